// Keeps the click id of the landing page, and sends what a page tells it.
(() => {
  const script = document.currentScript, name = "lm_click", url = script.src.replace(/\.js.*$/, "");
  const sent = new URLSearchParams(location.search).get(name);
  let store = {};
  try {
    store = localStorage;
    if (sent) store.setItem(name, sent);
  } catch {
    store = { [name]: sent };
  }
  const report = (event, order) => {
    const click = store[name];
    if (click) navigator.sendBeacon(url, JSON.stringify({ ...order, event, click }));
  };
  const before = window.linkmgr?.q ?? [];
  window.linkmgr = report;
  for (const call of before) report(...call);
  const { event, ...order } = script.dataset;
  if (event) report(event, order);
})();
