// Redirect the visitor after the countdown; without one, when the pixels have fired, but after at most one second.
const target = document.querySelector("[data-target]");
const wait = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

async function countDown(counter) {
  let remaining = counter.textContent * 1000;
  for (let before = performance.now(); remaining > 0; ) {
    counter.textContent = Math.ceil(remaining / 1000);
    await wait(Math.min(remaining, 100));
    const now = performance.now();
    if (!counter.closest(".paused")) remaining -= now - before;
    before = now;
  }
  counter.textContent = 0;
}

const pause = document.querySelector("[data-pause]");
if (pause) pause.hidden = false;
pause?.addEventListener("click", () => {
  const paused = document.querySelector(".counter").classList.toggle("paused");
  pause.textContent = paused ? "Resume" : "Pause";
});

// The pixel frame has no origin, so its messages are identified by their window.
const pixels = document.querySelector("[data-pixels]");
const fired = new Promise((resolve) => addEventListener("message", ({ source }) => source === pixels?.contentWindow && resolve()));

const counter = document.querySelector("[data-counter]");
const ready = counter ? countDown(counter) : Promise.race([fired, wait(1000)]);
// replace() keeps this page out of the history, so that Back skips it.
ready.then(() => location.replace(target.href));
