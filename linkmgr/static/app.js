// Open the app or its page in the store. If neither opens, the visitor uses the links of this page.
location.assign(document.querySelector("[data-app]").href);
