// Takes the visitor on: when the seconds are over, or as soon as the pixels have fired and within a second.
const onward = document.querySelector("[data-onward]");
const wait = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

async function countDown(counter) {
  const end = performance.now() + counter.textContent * 1000;
  for (let left = end; left > 0; left = end - performance.now()) {
    counter.textContent = Math.ceil((end - performance.now()) / 1000);
    await wait(Math.min(left, 100));
  }
  counter.textContent = 0;
}

// The frame of the pixels has no origin: its messages are known by their window.
const pixels = document.querySelector("[data-pixels]");
const fired = new Promise((done) => addEventListener("message", ({ source }) => source === pixels?.contentWindow && done()));

const counter = document.querySelector("[data-counter]");
const over = counter ? countDown(counter) : Promise.race([fired, wait(1000)]);
// Back leads past this page.
over.then(() => location.replace(onward.href));
