// Forms with a preview, which console.js renews. Rows of links are moved by dragging or by their buttons.
const changed = () => document.getElementById("form").dispatchEvent(new Event("input"));
for (const button of document.querySelectorAll(".live [name=again]")) button.hidden = true;

const rows = document.getElementById("blocks");

function move(row, action) {
  if (action === "remove") return rows.children.length > 1 ? row.remove() : clear(row);
  if (action === "up") row.previousElementSibling?.before(row);
  if (action === "down") row.nextElementSibling?.after(row);
  const number = [...rows.children].indexOf(row) + 1;
  document.getElementById("moved").textContent = `Link ${number} of ${rows.children.length}`;
}

function clear(row) {
  for (const control of row.querySelectorAll("input, select")) {
    control.value = "";
    for (const name of ["aria-invalid", "list"]) control.removeAttribute(name);
  }
}

function addBehind(last) {
  const row = last.cloneNode(true);
  clear(row);
  last.after(row);
  row.querySelector("input, select").focus();
}

rows?.closest("fieldset").addEventListener("click", (event) => {
  const button = event.target.closest("[name=again]");
  if (!button) return;
  event.preventDefault();
  if (button.value === "add") return addBehind(rows.lastElementChild);
  const row = button.closest("li");
  const next = row.nextElementSibling ?? row.previousElementSibling;
  move(row, button.value.split("-")[0]);
  (row.isConnected ? button : next?.querySelector("input"))?.focus();
  changed();
});

rows?.addEventListener("pointerdown", (event) => {
  const row = event.target.closest(".grip")?.closest("li"), end = new AbortController();
  if (!row) return;
  event.preventDefault();
  row.classList.add("moving");
  const drag = ({ clientY }) => {
    const box = row.getBoundingClientRect();
    if (clientY < box.top) move(row, "up");
    if (clientY > box.bottom) move(row, "down");
  };
  const drop = () => {
    end.abort();
    row.classList.remove("moving");
    changed();
  };
  addEventListener("pointermove", drag, { signal: end.signal });
  for (const name of ["pointerup", "pointercancel"]) addEventListener(name, drop, { signal: end.signal });
});
for (const grip of document.querySelectorAll(".grip")) grip.hidden = false;

// A text with data-slug follows the name until it is typed in.
const slug = document.querySelector("[data-slug]");
slug?.addEventListener("input", () => slug.removeAttribute("data-slug"));
document.getElementById("name")?.addEventListener("input", ({ target }) => {
  const words = target.value.normalize("NFKD").replace(/[^\w\s-]/g, "").trim().toLowerCase();
  if (slug?.hasAttribute("data-slug")) slug.value = words.replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 50);
});

// Rows of two controls are added without sending the form.
for (const button of document.querySelectorAll("[data-add-row]")) {
  button.hidden = false;
  button.addEventListener("click", (event) => {
    event.preventDefault();
    addBehind(button.closest("fieldset").querySelector(".pair:last-of-type"));
  });
}

// The value of a condition of a rule is chosen from the list of that condition.
document.addEventListener("change", ({ target }) => {
  if (target.matches("[name$='.condition']")) target.nextElementSibling.setAttribute("list", `values-${target.value}`);
});

// An image that is larger than an upload may be becomes smaller.
const MAX_UPLOAD = 32768, SIDE = 320;
const file = document.getElementById("logo.file");

file?.addEventListener("change", async () => {
  if (!file.files.length || file.files[0].size <= MAX_UPLOAD) return;
  const image = await createImageBitmap(file.files[0]);
  for (let side = SIDE; side >= 40; side /= 2) {
    const canvas = document.createElement("canvas"), scale = Math.min(1, side / Math.max(image.width, image.height));
    [canvas.width, canvas.height] = [image.width, image.height].map((length) => Math.max(1, Math.round(length * scale)));
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    const png = await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
    if (png.size > MAX_UPLOAD) continue;
    const transfer = new DataTransfer();
    transfer.items.add(new File([png], "logo.png"));
    file.files = transfer.files;
    return changed();
  }
});
