// Buttons that copy the text of the element in data-copy, with URLs in ASCII. They stay hidden without JavaScript.
{
  const show = () => {
    for (const button of document.querySelectorAll("[data-copy][hidden]")) {
      button.hidden = false;
      button.addEventListener("click", async () => {
        const source = document.getElementById(button.dataset.copy);
        if (!source.hidden) getSelection().selectAllChildren(source);
        try {
          const ascii = (url) => new URL(url).href;
          await navigator.clipboard.writeText(source.textContent.replace(/https?:\/\/\S*[\u0080-\uffff]\S*/g, ascii));
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
