// Escape hides the overlay; its form is sent without leaving the page that lies below.
const overlay = document.querySelector(".overlay");
const form = overlay.querySelector("form");

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !overlay.open) return;
  overlay.open = false;
  overlay.querySelector("summary").focus();
});

form?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const said = overlay.querySelector("[role=status]");
  const button = form.querySelector("button");
  button.disabled = true;
  try {
    const body = new URLSearchParams(new FormData(form));
    const answer = await fetch(form.action, { method: "POST", body, headers: { Accept: "application/json" } });
    said.textContent = (await answer.json()).message;
    form.hidden = answer.ok;
  } catch {
    said.textContent = "That could not be sent: please try again.";
  }
  button.disabled = false;
});
