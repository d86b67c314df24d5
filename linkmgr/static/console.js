// A box with data-unchosen, which has the focus at first, leaves the keys to the page until something is in it or it is chosen.
for (const box of document.querySelectorAll("[data-unchosen]"))
  for (const name of ["pointerdown", "blur", "input"]) box.addEventListener(name, () => delete box.dataset.unchosen);

// Forms say which account their page shows, because another tab may have switched to another account since.
const { account } = document.body.dataset;
if (account)
  for (const sender of document.querySelectorAll("main form[method=post], main [formaction]")) {
    const name = sender.matches("form") ? "action" : "formaction";
    const url = new URL(sender.getAttribute(name) ?? "", location.href);
    url.searchParams.set("account", account);
    sender.setAttribute(name, url.pathname + url.search);
  }

// Keys: "/" focuses the search, "n" makes a new row, "?" lists the keys, Escape closes the dialog and the menu, which browsers do.
document.addEventListener("keydown", (event) => {
  const box = event.target.closest("input:not([type=checkbox]), textarea, select, dialog");
  if (event.ctrlKey || event.metaKey || event.altKey || (box && (box.value || !("unchosen" in box.dataset)))) return;
  const control = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
  if (!control) return;
  event.preventDefault();
  if (control.matches("input")) control.focus();
  else control.click();
});

// Links with data-dialog open a dialog instead of their page.
for (const link of document.querySelectorAll("[data-dialog]")) {
  link.hidden = false;
  link.addEventListener("click", (event) => {
    event.preventDefault();
    document.getElementById(link.dataset.dialog).showModal();
  });
}

// Enter sends the form of a text with data-enter. Shift and Enter begin a line.
for (const text of document.querySelectorAll("[data-enter]")) {
  text.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    text.form.requestSubmit();
  });
}

// A form is sent once, also after a second click on a slow connection. It can be sent again after a preview, after a button
// with data-download, after Back, and, because a user may have stopped the request, after ten seconds.
const sent = new Map();
addEventListener("pageshow", () => sent.clear());
document.addEventListener("submit", (event) => {
  const { target: form, submitter } = event;
  if (form.method !== "post" || submitter?.formTarget || submitter?.matches("[data-download], [formmethod=dialog]") || event.defaultPrevented) return;
  if (event.timeStamp < sent.get(form) + 10000) event.preventDefault();
  else sent.set(form, event.timeStamp);
});

// Forms with data-live show their results while one types: the same page is loaded, and this part of it is replaced.
for (const form of document.querySelectorAll("[data-live]")) {
  let timer, loading;
  const load = async () => {
    const query = new URLSearchParams([...new FormData(form)].filter(([name, value]) => value && (name !== "order" || value !== "date")));
    const url = `${form.getAttribute("action")}${query.size ? `?${query}` : ""}`;
    loading?.abort();
    loading = new AbortController();
    try {
      const response = await fetch(url, { signal: loading.signal });
      if (!response.ok || response.redirected) return form.submit();
      await showParts(response, form.dataset.live, "total");
      history.replaceState(null, "", url);
      document.dispatchEvent(new Event("results"));
    } catch (error) {
      if (error.name !== "AbortError") form.submit();
    }
  };
  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(load, 250);
  });
}

// A button that selects all rows, or none if all are selected; one with "all" also those of other pages.
const showSelectAll = () => {
  for (const button of document.querySelectorAll("[data-select-all]")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      const boxes = [...button.form.querySelectorAll("input[name=id]")];
      const checked = !boxes.every((box) => box.checked);
      for (const box of boxes) box.checked = checked;
      const { all } = button.form.elements;
      if (all) all.checked = checked && button.dataset.selectAll === "all";
      button.form.dispatchEvent(new Event("change"));
    });
    button.form.addEventListener("change", () => {
      const number = button.form.querySelectorAll("input[name=id]:checked").length;
      button.form.querySelector("[data-selected]").textContent = `${number} selected`;
    });
  }
};
showSelectAll();
document.addEventListener("results", showSelectAll);

// A change of many links continues by itself.
for (const form of document.querySelectorAll("[data-continue]")) form.requestSubmit(form.querySelector("button"));

// A button that selects the time zone of the browser, if it is another one, in a list or in a form that offers it.
for (const button of document.querySelectorAll("[data-zone]")) {
  const select = document.getElementById(button.dataset.zone);
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (zone === select.value || (select.options && ![...select.options].some((option) => option.value === zone))) continue;
  button.textContent = `Use ${zone}`;
  (button.closest("[data-offer]") ?? button).hidden = false;
  button.addEventListener("click", () => {
    select.value = zone;
    button.form.requestSubmit();
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

// The summaries of groups and the previews of a form follow what is typed: the form is fetched as it would be shown again. The
// form is sent after the response, because a user may be allowed only one request at a time that draws an image.
for (const form of document.querySelectorAll("form:has(.group), #form")) {
  let timer, loading;
  const load = async () => {
    const body = new FormData(form);
    body.append("again", "preview");
    body.delete("current_password");
    try {
      const response = await fetch(form.action, { method: "POST", body, signal: AbortSignal.timeout(10000) });
      if (response.status >= 500) throw new Error("try again");
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      for (const part of page.querySelectorAll(".live [id], summary [id], .renewed")) {
        const current = document.getElementById(part.id);
        if (!current || current.outerHTML === part.outerHTML) continue;
        if (part.matches("iframe")) current.srcdoc = part.srcdoc;
        else current.replaceChildren(...part.childNodes);
      }
    } catch {
      renewIn(2000);
    }
    loading = null;
  };
  const renewIn = (milliseconds) => {
    clearTimeout(timer);
    timer = setTimeout(() => (loading ? renewIn(100) : (loading = load())), milliseconds);
  };
  form.addEventListener("input", () => renewIn(300));
  form.addEventListener("submit", async (event) => {
    clearTimeout(timer);
    if (!loading || event.submitter?.formMethod === "dialog") return;
    event.preventDefault();
    await loading;
    clearTimeout(timer);
    form.requestSubmit(event.submitter);
  });
}

// A file control with data-send sends its form when a file is chosen.
for (const input of document.querySelectorAll("[data-send]")) input.addEventListener("change", () => input.files.length && input.form.requestSubmit());

// A part with data-reload is loaded again after so many seconds, from its data-url, or else with its page. A form with data-part
// changes that part without leaving the page, which may show what is shown only once.
const showParts = async (response, ...ids) => {
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  for (const id of ids) document.getElementById(id).replaceWith(page.getElementById(id));
  reloadParts();
};
const reloadParts = () => {
  for (const part of document.querySelectorAll("[data-reload]")) {
    const { url, reload } = part.dataset;
    setTimeout(() => (url ? part.isConnected && fetch(url).then((response) => showParts(response, part.id)) : location.reload()), reload * 1000);
  }
};
reloadParts();
document.addEventListener("submit", async (event) => {
  const { target: form, submitter } = event;
  if (!form.dataset.part || event.defaultPrevented) return;
  event.preventDefault();
  const body = new URLSearchParams(new FormData(form, submitter));
  try {
    await showParts(await fetch(form.action, { method: "POST", body }), "messages", form.dataset.part);
    sent.delete(form);
  } catch {
    location.assign(form.closest("[data-url]")?.dataset.url ?? location);
  }
});

// A pattern of events, such as link.*, and what it covers exclude each other.
for (const events of document.querySelectorAll("[data-events]")) {
  const covers = (pattern, name) => pattern !== name && pattern.endsWith("*") && name.startsWith(pattern.slice(0, -1));
  events.addEventListener("change", ({ target }) => {
    for (const box of events.querySelectorAll("input"))
      if (target.checked && (covers(box.value, target.value) || covers(target.value, box.value))) box.checked = false;
  });
}

// A chart says the figures of the bucket below the pointer or a finger, and with the arrow keys those of the next one.
for (const plot of document.querySelectorAll("[data-plot]")) {
  const marks = [...plot.querySelectorAll(".mark")], output = document.getElementById(plot.dataset.plot);
  let active = marks.length;
  const show = (number) => {
    marks[active]?.classList.remove("active");
    active = Math.min(Math.max(number, 0), marks.length - 1);
    marks[active].classList.add("active");
    output.textContent = marks[active].querySelector("title").textContent;
  };
  for (const name of ["pointerdown", "pointermove"])
    plot.addEventListener(name, ({ clientX }) => {
      const { left, width } = plot.getBoundingClientRect();
      show(Math.floor(((clientX - left) / width) * marks.length));
    });
  plot.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -marks.length, End: marks.length }[event.key];
    if (!step) return;
    event.preventDefault();
    show(active + step);
  });
}

// A folded group of the menu stays so, unless it has the entry of the page, which is in sight also in a low window.
for (const group of document.querySelectorAll("[data-fold]")) {
  const name = `fold ${group.dataset.fold}`;
  group.open = !localStorage.getItem(name) || Boolean(group.querySelector("[aria-current]"));
  group.addEventListener("toggle", () => (group.open ? localStorage.removeItem(name) : localStorage.setItem(name, "1")));
}
document.querySelector(".menu [aria-current]")?.scrollIntoView({ block: "nearest" });
