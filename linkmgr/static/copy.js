// Buttons that copy the text of the element that they name; without scripts they stay hidden.
for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const source = document.getElementById(button.dataset.copy);
    getSelection().selectAllChildren(source);
    // Over plain HTTP there is no navigator.clipboard.
    if (navigator.clipboard) await navigator.clipboard.writeText(source.textContent);
    else document.execCommand("copy");
    button.textContent = "Copied";
  });
}
