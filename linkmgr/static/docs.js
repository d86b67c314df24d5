// /api/docs: sends what the forms hold, and finds operations.  Without scripts the page can still be read.
const key = document.getElementById("api-key");
const filter = document.getElementById("filter");
const operations = [...document.querySelectorAll(".operation")];

function element(name, text, kind = "") {
  const made = document.createElement(name);
  made.textContent = text;
  made.className = kind;
  return made;
}

function request(form) {
  let path = form.dataset.path;
  const query = new URLSearchParams();
  for (const input of form.querySelectorAll("[data-place]")) {
    if (input.dataset.place === "path") path = path.replace(`{${input.name}}`, encodeURIComponent(input.value));
    else if (input.value) query.set(input.name, input.value);
  }
  const headers = key.value ? { Authorization: `Bearer ${key.value.trim()}` } : {};
  const options = { method: form.dataset.method, headers, credentials: "omit", cache: "no-store" };
  if (form.elements.body) {
    options.body = form.elements.body.value;
    headers["Content-Type"] = "application/json";
  }
  return [query.size ? `${path}?${query}` : path, options];
}

async function told(response) {
  const text = await response.text();
  const left = response.headers.get("X-RateLimit-Remaining");
  const limit = response.headers.get("X-RateLimit-Limit");
  let shown = text;
  try {
    shown = JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    // What stands between us and the service may answer in another form.
  }
  const pre = element("pre", shown, "text");
  pre.tabIndex = 0;
  pre.setAttribute("role", "group");
  pre.setAttribute("aria-label", "Answer");
  const status = `HTTP ${response.status}`;
  return [
    element("p", left === null ? status : `${status}, ${left} of ${limit} requests left`, `notice ${response.ok ? "success" : "error"}`),
    pre,
  ];
}

async function send(event) {
  event.preventDefault();
  const form = event.target;
  const answer = form.querySelector(".answer");
  const button = form.querySelector("button");
  button.disabled = true;
  try {
    answer.replaceChildren(...(await told(await fetch(...request(form)))));
  } catch {
    answer.replaceChildren(element("p", "The service could not be reached.", "notice error"));
  }
  button.disabled = false;
}

function find() {
  const words = filter.value.toLowerCase().split(/\s+/);
  for (const operation of operations) {
    const text = operation.querySelector("summary").textContent.toLowerCase();
    operation.hidden = !words.every((word) => text.includes(word));
  }
  for (const section of document.querySelectorAll("section.card"))
    section.hidden = !section.querySelector(".operation:not([hidden])");
  const found = operations.filter((operation) => !operation.hidden).length;
  document.getElementById("found").textContent = filter.value ? `${found} of ${operations.length} operations` : "";
}

function openNamed() {
  const named = document.getElementById(location.hash.slice(1));
  if (named?.classList.contains("operation")) named.open = true;
}

for (const form of document.querySelectorAll(".trial")) {
  form.hidden = false;
  form.addEventListener("submit", send);
}
const settings = document.getElementById("settings");
settings.hidden = false;
settings.addEventListener("submit", (event) => event.preventDefault());
filter.addEventListener("input", find);
addEventListener("hashchange", openNamed);
openNamed();
