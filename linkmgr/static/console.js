// Keys: "/" focuses the search, "n" makes a new link. Links with data-dialog open a dialog instead of their page. A page
// with data-reload is loaded again after so many seconds.
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

for (const part of document.querySelectorAll("[data-reload]")) setTimeout(() => location.reload(), part.dataset.reload * 1000);
