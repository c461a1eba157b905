// Refreshes what has data-live every two seconds, but not while nobody looks, somebody has paused
// it, marks text, is at a row with the keyboard, or a dialog is open. What has not changed is
// answered with 304 and left alone.

const EVERY = 2000;
const SLOWEST = 30000;

const etags = new WeakMap();
const asking = new WeakSet();
const unseen = new WeakSet();
let paused = false;
let misses = 0;
let notBefore = 0;

const regions = () => [...document.querySelectorAll("[data-live]")];

// A form that is under way must still be there when its answer comes.
const sending = () => document.querySelector("form.htmx-request") !== null;

function resting() {
  if (paused || document.hidden || Date.now() < notBefore) return true;
  if (document.querySelector("dialog[open]") || sending()) return true;
  // Whoever has come to a row with the keyboard must not find another one under their finger.
  if (document.querySelector("[data-live] tbody :focus-visible")) return true;
  const marked = getSelection();
  return Boolean(marked && !marked.isCollapsed);
}

function refresh() {
  if (resting()) return;
  for (const region of regions()) {
    if (!asking.has(region)) window.htmx.trigger(region, "live");
  }
}

function showMode(mode) {
  const button = document.getElementById("live");
  if (!button) return;
  const words = { live: "Live", paused: "Paused", "cut-off": "Cut off" };
  const titles = {
    live: "This page refreshes itself. Pause it (.)",
    paused: "This page does not refresh itself. Go on (.)",
    "cut-off": "The server does not answer; trying again",
  };
  button.hidden = regions().length === 0;
  button.dataset.mode = mode;
  button.title = titles[mode];
  button.setAttribute("aria-pressed", String(mode === "paused"));
  button.querySelector(".live-text").textContent = words[mode];
}

function asked({ detail }) {
  if (!detail.elt.hasAttribute("data-live")) return;
  asking.add(detail.elt);
  const known = etags.get(detail.elt);
  if (known) detail.headers["If-None-Match"] = known;
}

function answered({ detail }) {
  const region = detail.elt;
  if (!region.hasAttribute("data-live")) return;
  asking.delete(region);
  const status = detail.xhr.status;
  const fine = status === 304 || (status >= 200 && status < 300);
  const etag = status === 200 && !unseen.has(detail.xhr) ? detail.xhr.getResponseHeader("ETag") : null;
  if (etag) etags.set(region, etag);
  // What has gone on to another page takes the reader along.
  if (region.hasAttribute("data-leads-on") && status === 200) {
    const there = new URL(detail.xhr.responseURL);
    if (there.pathname !== location.pathname) location.assign(there);
  }
  misses = fine ? 0 : misses + 1;
  notBefore = fine ? 0 : Date.now() + Math.min(SLOWEST, EVERY * 2 ** Math.min(misses, 4));
  if (!paused) showMode(misses > 1 ? "cut-off" : "live");
}

function keepOnTrouble(event) {
  const { elt, xhr } = event.detail;
  if (!elt.hasAttribute?.("data-live")) return;
  if (xhr.status === 200 && !sending()) return;
  event.detail.shouldSwap = false;
  unseen.add(xhr);
}

// A run that is watched tells when something changes; asking every two seconds goes on beside it.
function listen() {
  const watched = document.querySelector("[data-live][data-events]");
  if (!watched) return;
  const stream = new EventSource(watched.dataset.events);
  const look = () => {
    if (!resting() && !asking.has(watched)) window.htmx.trigger(watched, "live");
  };
  stream.addEventListener("execution", look);
  stream.addEventListener("end", () => {
    stream.close();
    look();
  });
  window.addEventListener("pagehide", () => stream.close());
}

export function startLive() {
  if (!window.htmx) return;
  document.addEventListener("htmx:configRequest", asked);
  document.addEventListener("htmx:afterRequest", answered);
  document.addEventListener("htmx:beforeSwap", keepOnTrouble);
  document.addEventListener("visibilitychange", refresh);
  document.addEventListener("htmx:afterSettle", () => {
    if (!paused && misses < 2) showMode("live");
  });
  document.getElementById("live")?.addEventListener("click", () => {
    paused = !paused;
    showMode(paused ? "paused" : "live");
    refresh();
  });
  showMode("live");
  listen();
  setInterval(refresh, EVERY);
}
