// /api/docs: load sections, send requests, update the curl commands and filter operations. The pages are readable without
// JavaScript.
const key = document.getElementById("api-key");
const filter = document.getElementById("filter");

function element(name, text, className = "") {
  return Object.assign(document.createElement(name), { textContent: text, className });
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
  const operations = [...document.querySelectorAll(".operation")];
  for (const operation of operations) {
    const text = operation.querySelector("summary, a").textContent.toLowerCase();
    operation.hidden = !words.every((word) => text.includes(word));
  }
  for (const section of document.querySelectorAll("section.card:has(.operation)"))
    section.hidden = !section.querySelector(".operation:not([hidden])");
  const matches = operations.filter((operation) => !operation.hidden).length;
  document.getElementById("matches").textContent = filter.value ? `${matches} of ${operations.length} operations` : "";
}

function prepare(part) {
  for (const form of part.querySelectorAll(".trial")) {
    form.hidden = false;
    form.addEventListener("submit", send);
    form.addEventListener("input", () => {
      form.parentElement.querySelector("pre.curl").textContent = command(form);
    });
  }
  for (const button of part.querySelectorAll(".copy")) {
    button.hidden = false;
    button.addEventListener("click", () => copy(button));
  }
}

// Replace a section of the first page by the whole one.
async function load(section) {
  const page = new DOMParser().parseFromString(await (await fetch(section.dataset.section)).text(), "text/html");
  const whole = page.querySelector(`section[aria-labelledby="${section.getAttribute("aria-labelledby")}"]`);
  section.replaceWith(whole);
  prepare(whole);
  filterOperations();
}

// Open what the URL names: an operation, or a member, whose id begins with that of its section.
async function openTarget() {
  const id = location.hash.slice(1);
  const named = document.getElementById(id) ?? [...document.querySelectorAll("[data-section] h2")].find((heading) => id.startsWith(`${heading.id}-`));
  const section = named?.closest("[data-section]");
  if (section && (named.id !== id || !named.matches("h2"))) await load(section);
  const target = document.getElementById(id);
  if (target?.matches("details")) target.open = true;
  if (section) target?.scrollIntoView();
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("[data-section] a");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  if (link.hash) location.hash = link.hash;
  else load(link.closest("[data-section]")).catch(() => location.assign(link.href));
});
prepare(document);
const settings = document.getElementById("settings");
settings.hidden = false;
settings.addEventListener("submit", (event) => event.preventDefault());
filter.addEventListener("input", filterOperations);
addEventListener("hashchange", openTarget);
openTarget();
