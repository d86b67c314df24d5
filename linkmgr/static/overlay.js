// Hide the overlay with Escape, and send its form without leaving the framed page.
const overlay = document.querySelector(".overlay");
const form = overlay.querySelector("form");

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !overlay.open) return;
  overlay.open = false;
  overlay.querySelector("summary").focus();
});

form?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const status = overlay.querySelector("[role=status]");
  const button = form.querySelector("button");
  button.disabled = true;
  try {
    const body = new URLSearchParams(new FormData(form));
    const response = await fetch(form.action, { method: "POST", body, headers: { Accept: "application/json" } });
    status.textContent = (await response.json()).message;
    form.hidden = response.ok;
  } catch {
    status.textContent = "Your answer could not be sent. Please try again.";
  }
  button.disabled = false;
});
