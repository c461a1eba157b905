// The dependency graph: pan, zoom, find. Without this it is a picture that scrolls.
import { lighting } from "./graph_light.js";
import { overview } from "./graph_map.js";
import { viewing } from "./graph_view.js";

const SETTLED = 3000;
const boxes = new Map();

function start(box) {
  const light = lighting(box);
  const map = overview(box);
  const view = viewing(box, (place) => map.show(place));
  map.onMove((x, y) => view.centre(x, y));
  light.onPick((node) => view.bring(node));
  const keep = () => {
    view.apply();
    light.apply();
    map.draw();
  };
  boxes.set(box, keep);
  keep();
}

function startAll() {
  for (const box of document.querySelectorAll("[data-graph]")) {
    if (!boxes.has(box)) start(box);
  }
}

// A refresh changes how nodes stand and never where they are; if their places have changed, because
// something was declared, the page is loaded anew.
function keepShape(event) {
  const box = event.detail.elt.closest?.("[data-graph]");
  if (!box || event.detail.xhr.status !== 200) return;
  const shape = /data-shape="(\w+)"/.exec(event.detail.xhr.responseText)?.[1];
  if (shape === box.querySelector("svg.graph").dataset.shape) return;
  event.detail.shouldSwap = false;
  // Not more often than every few seconds, whatever the server says.
  setTimeout(() => window.location.reload(), Math.max(0, SETTLED - performance.now()));
}

startAll();
document.addEventListener("htmx:beforeSwap", keepShape);
document.addEventListener("htmx:afterSwap", () => {
  for (const [box, keep] of boxes) {
    if (box.isConnected) keep();
    else boxes.delete(box);
  }
  startAll();
});
