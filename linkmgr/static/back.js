// Show the button if there is a page to go back to.
const back = document.querySelector("[data-back]");
back.hidden = history.length < 2;
back.firstElementChild.addEventListener("click", () => history.back());
