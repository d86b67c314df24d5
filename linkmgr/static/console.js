// Keys: "/" focuses the search, "n" makes a new link. Links with data-dialog open a dialog instead of their page.
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog")) return;
  const control = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
  if (!control) return;
  event.preventDefault();
  if (control.matches("input")) control.focus();
  else control.click();
});

for (const link of document.querySelectorAll("[data-dialog]")) {
  link.addEventListener("click", (event) => {
    event.preventDefault();
    document.getElementById(link.dataset.dialog).showModal();
  });
}

// Buttons with data-preview show in a frame what is typed in their form. With scripts this happens while typing.
for (const button of document.querySelectorAll("[data-preview]")) {
  let timer;
  const update = () => {
    const query = new URLSearchParams(new FormData(button.form)).toString();
    // replace() adds no step to the Back button. It takes a URL, whose length is limited.
    if (query.length < 7000) document.querySelector("iframe[name=preview]").contentWindow.location.replace(`${button.formAction}?${query}`);
    else button.form.requestSubmit(button);
  };
  button.hidden = true;
  button.form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(update, 400);
  });
  if (button.dataset.preview === "now") update();
}
