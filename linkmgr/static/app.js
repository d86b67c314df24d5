// Opens the app, or its page in the store; where neither takes over, the page and its way on stay.
location.assign(document.querySelector("[data-app]").href);
