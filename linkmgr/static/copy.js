// Buttons that copy the text of the element in data-copy, with host names in ASCII. They stay hidden without JavaScript.
{
  const show = () => {
    for (const button of document.querySelectorAll("[data-copy][hidden]")) {
      button.hidden = false;
      button.addEventListener("click", async () => {
        const source = document.getElementById(button.dataset.copy);
        if (!source.hidden) getSelection().selectAllChildren(source);
        try {
          const ascii = (start) => new URL(start).origin;
          await navigator.clipboard.writeText(source.textContent.replace(/https?:\/\/[^\s/]*[\u0080-\uffff][^\s/]*/g, ascii));
        } catch {
          document.execCommand("copy"); // navigator.clipboard is missing outside of secure contexts, or not allowed
        }
        button.textContent = "Copied";
      });
    }
  };
  show();
  document.addEventListener("results", show); // of a search
}
