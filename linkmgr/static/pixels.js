// Run the page's pixels as their vendors' own tags do. Notify the parent page once all scripts have loaded or failed,
// plus a delay for their calls.
{
  const DELAY = 400; // milliseconds

  // The page's `sandbox` policy makes document.cookie throw, which vendors' scripts do not expect.
  Object.defineProperty(document, "cookie", { value: "", writable: true });

  const scripts = new Map();

  // Load each script only once.
  const load = (url, onload) => {
    if (!scripts.has(url)) {
      scripts.set(url, new Promise((resolve) => {
        document.head.append(Object.assign(document.createElement("script"), { src: url, onload: resolve, onerror: resolve }));
      }));
    }
    if (onload) scripts.set(`${url}#${scripts.size}`, scripts.get(url).then(onload));
  };

  // Define the function that a tag calls: it adds calls to `queue` until the vendor's script defines `method`.
  const tag = (name, queue, method, properties) => {
    if (!window[name]) {
      const call = (...values) => (method && call[method] ? call[method](...values) : call[queue].push(values));
      window[name] = Object.assign(call, { [queue]: [] }, properties);
    }
    return window[name];
  };

  // Google's scripts only accept `arguments` objects.
  function gtag() {
    window.dataLayer.push(arguments);
  }

  const google = (...calls) => {
    window.dataLayer ??= [];
    gtag("js", new Date());
    for (const call of calls) gtag(...call);
  };

  const parts = (id) => id.split(/[/:](.*)/s);

  const vendors = {
    gtmpixel() {
      window.dataLayer ??= [];
      window.dataLayer.push({ "gtm.start": Date.now(), event: "gtm.js" });
    },
    gapixel: (id) => google(["config", id]),
    adwordspixel(id) {
      const [account, label] = parts(id);
      google(["config", account], ...(label ? [["event", "conversion", { send_to: id }]] : []));
    },
    fbpixel(id) {
      const fbq = tag("fbq", "queue", "callMethod", { loaded: true, version: "2.0" });
      window._fbq ??= fbq;
      fbq.push = fbq;
      fbq("init", id);
      fbq("trackSingle", id, "PageView");
    },
    linkedinpixel(id) {
      window._linkedin_partner_id = id;
      (window._linkedin_data_partner_ids ??= []).push(id);
      tag("lintrk", "q");
    },
    twitterpixel: (id) => tag("twq", "queue", "exe", { version: "1.1" })("config", id),
    adrollpixel(id) {
      [window.adroll_adv_id, window.adroll_pix_id = ""] = parts(id);
      window.adroll_version = "2.0";
      window.__adroll_loaded = true;
      const adroll = (window.adroll ??= []);
      adroll.track ??= (...values) => adroll.push(["track", values]);
      adroll.track("pageView");
    },
    quorapixel(id) {
      const qp = tag("qp", "queue", "qp");
      qp("init", id);
      qp("track", "ViewContent");
    },
    pinterest(id) {
      const pintrk = tag("pintrk", "queue", "", { version: "3.0" });
      pintrk("load", id);
      pintrk("page");
    },
    bing(id, url) {
      window.uetq ??= [];
      load(url, () => {
        if (!window.UET) return;
        window.uetq = new window.UET({ ti: id, q: window.uetq });
        window.uetq.push("pageLoad");
      });
    },
    snapchat(id) {
      const snaptr = tag("snaptr", "queue", "handleRequest");
      snaptr("init", id);
      snaptr("track", "PAGE_VIEW");
    },
    reddit(id) {
      const rdt = tag("rdt", "callQueue", "sendEvent");
      rdt("init", id);
      rdt("track", "PageVisit");
    },
    tiktok(id, url) {
      window.TiktokAnalyticsObject = "ttq";
      const methods = ["page", "track", "identify", "instances", "debug", "on", "off", "once", "ready", "alias",
        "group", "enableCookie", "disableCookie", "holdConsent", "revokeConsent", "grantConsent"];
      // The script sends the calls in this array for every pixel in `_i`, so page() is called only once.
      if (!window.ttq) {
        const defer = (queue, method) => { queue[method] = (...values) => queue.push([method, ...values]); };
        const ttq = Object.assign([], { methods, setAndDefer: defer, _i: {}, _t: {}, _o: {} });
        for (const method of methods) defer(ttq, method);
        window.ttq = ttq;
        ttq.page();
      }
      window.ttq._i[id] = Object.assign([], { _u: url.split("?")[0] });
      window.ttq._t[id] = Date.now();
      window.ttq._o[id] = {};
    },
  };

  for (const { dataset } of document.querySelectorAll("[data-pixel]")) {
    vendors[dataset.pixel](dataset.tag, dataset.script);
    load(dataset.script);
  }

  Promise.all(scripts.values()).then(() => setTimeout(() => parent.postMessage("fired", "*"), DELAY));
}
