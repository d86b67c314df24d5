// /api/docs: send requests, update the curl commands and filter operations. The page is readable without JavaScript.
const key = document.getElementById("api-key");
const filter = document.getElementById("filter");
const operations = [...document.querySelectorAll(".operation")];

function element(name, text, className = "") {
  const node = document.createElement(name);
  node.textContent = text;
  node.className = className;
  return node;
}

function request(form, fill = (value) => value) {
  let path = form.dataset.path;
  const query = new URLSearchParams();
  const headers = key.value ? { Authorization: `Bearer ${key.value.trim()}` } : {};
  for (const input of form.querySelectorAll("[data-place]")) {
    if (input.dataset.place === "path") path = path.replace(`{${input.name}}`, encodeURIComponent(fill(input.value)));
    else if (input.value && input.dataset.place === "header") headers[input.name] = input.value;
    else if (input.value) query.set(input.name, input.value);
  }
  const options = { method: form.dataset.method, headers, credentials: "omit", cache: "no-store" };
  if (form.elements.body) {
    options.body = form.elements.body.value;
    headers["Content-Type"] = "application/json";
  }
  if (form.elements.file) {
    options.body = new FormData();
    options.body.set("file", form.elements.file.files[0] ?? "");
  }
  return [query.size ? `${path}?${query}` : path, options];
}

// Return the request of the form as a curl command, without the key, which must not appear on the screen.
function command(form) {
  const [path, { method, headers, body }] = request(form, (value) => value || "17");
  const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`;
  const words = [`curl ${quoted(location.origin + path)}`];
  if (method !== "GET") words.push(`-X ${method}`);
  if (form.dataset.keyed) words.push("-H 'Authorization: Bearer API_KEY'");
  for (const [name, value] of Object.entries(headers))
    if (name !== "Authorization") words.push(`-H ${quoted(`${name}: ${value}`)}`);
  if (form.elements.file) words.push(`-F ${quoted("file=@links.csv")}`);
  else if (body) words.push(`-d ${quoted(body)}`);
  return words.join(" \\\n  ");
}

async function copy(button) {
  const pre = button.parentElement.querySelector("pre");
  const text = pre.textContent.replaceAll("API_KEY", key.value.trim() || "API_KEY");
  if (navigator.clipboard) await navigator.clipboard.writeText(text);
  else {
    // Browsers define navigator.clipboard only in secure contexts.
    const area = element("textarea", text);
    button.after(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  button.textContent = "Copied";
}

async function render(response) {
  const text = await response.text();
  const remaining = response.headers.get("X-RateLimit-Remaining");
  const limit = response.headers.get("X-RateLimit-Limit");
  let body = text;
  try {
    body = JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    // A proxy in front of the service may not respond with JSON.
  }
  const pre = element("pre", body, "text");
  pre.tabIndex = 0;
  pre.setAttribute("role", "group");
  pre.setAttribute("aria-label", "Response");
  const status = `HTTP ${response.status}`;
  return [
    element("p", remaining === null ? status : `${status}, ${remaining} of ${limit} requests remaining`, `notice ${response.ok ? "success" : "error"}`),
    pre,
  ];
}

async function send(event) {
  event.preventDefault();
  const form = event.target;
  const output = form.querySelector(".response");
  const button = form.querySelector("button");
  button.disabled = true;
  try {
    output.replaceChildren(...(await render(await fetch(...request(form)))));
  } catch {
    output.replaceChildren(element("p", "The service could not be reached. Please try again.", "notice error"));
  }
  button.disabled = false;
}

function filterOperations() {
  const words = filter.value.toLowerCase().split(/\s+/);
  for (const operation of operations) {
    const text = operation.querySelector("summary").textContent.toLowerCase();
    operation.hidden = !words.every((word) => text.includes(word));
  }
  for (const section of document.querySelectorAll("section.card:has(.operation)"))
    section.hidden = !section.querySelector(".operation:not([hidden])");
  const matches = operations.filter((operation) => !operation.hidden).length;
  document.getElementById("matches").textContent = filter.value ? `${matches} of ${operations.length} operations` : "";
}

function openTarget() {
  const target = document.getElementById(location.hash.slice(1));
  if (target?.matches("details")) target.open = true;
}

for (const form of document.querySelectorAll(".trial")) {
  form.hidden = false;
  form.addEventListener("submit", send);
  form.addEventListener("input", () => {
    form.parentElement.querySelector("pre.curl").textContent = command(form);
  });
}
for (const button of document.querySelectorAll(".copy")) {
  button.hidden = false;
  button.addEventListener("click", () => copy(button));
}
const settings = document.getElementById("settings");
settings.hidden = false;
settings.addEventListener("submit", (event) => event.preventDefault());
filter.addEventListener("input", filterOperations);
addEventListener("hashchange", openTarget);
openTarget();
