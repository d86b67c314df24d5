// Redirect the visitor after the countdown; without one, when the pixels have fired, but after at most one second.
const target = document.querySelector("[data-target]");
const wait = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

async function countDown(counter) {
  const end = performance.now() + counter.textContent * 1000;
  for (let remaining = end; remaining > 0; remaining = end - performance.now()) {
    counter.textContent = Math.ceil((end - performance.now()) / 1000);
    await wait(Math.min(remaining, 100));
  }
  counter.textContent = 0;
}

// The pixel frame has no origin, so its messages are identified by their window.
const pixels = document.querySelector("[data-pixels]");
const fired = new Promise((resolve) => addEventListener("message", ({ source }) => source === pixels?.contentWindow && resolve()));

const counter = document.querySelector("[data-counter]");
const ready = counter ? countDown(counter) : Promise.race([fired, wait(1000)]);
// replace() keeps this page out of the history, so that Back skips it.
ready.then(() => location.replace(target.href));
