// Buttons that copy the text of the element in data-copy. They stay hidden without JavaScript.
for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const source = document.getElementById(button.dataset.copy);
    getSelection().selectAllChildren(source);
    // Browsers define navigator.clipboard only in secure contexts.
    if (navigator.clipboard) await navigator.clipboard.writeText(source.textContent);
    else document.execCommand("copy");
    button.textContent = "Copied";
  });
}
