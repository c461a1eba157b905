// Which part of the graph is seen, and how large: a scale and the point in the upper left corner.

const LARGEST = 2;
const FAR = 0.5;
const READABLE = 0.62;
const NARROW = 600;
const STEP = 1.3;
const MOVE = 80;
const DRAGGED = 4;

export function viewing(box, moved) {
  const frame = box.querySelector(".graph-view");
  const key = `headway-graph ${location.pathname}${location.search}`;
  const picture = () => box.querySelector("svg.graph");
  const whole = { width: 0, height: 0 };
  let place = remembered();

  function measure() {
    const svg = picture();
    whole.width = Number(svg.getAttribute("width"));
    whole.height = Number(svg.getAttribute("height"));
    return { width: frame.clientWidth || 1, height: frame.clientHeight || 1 };
  }

  function fitting() {
    const room = measure();
    return Math.min(room.width / whole.width, room.height / whole.height, 1);
  }

  function smallest() {
    return Math.min(fitting() * 0.8, FAR);
  }

  function apply() {
    // A refresh of the whole page takes it away, as the server knows nothing of it.
    box.classList.add("graph-moves");
    const room = measure();
    if (!place || place.shape !== picture().dataset.shape) place = first();
    const { scale } = place;
    place.x = kept(place.x, room.width / scale, whole.width);
    place.y = kept(place.y, room.height / scale, whole.height);
    const svg = picture();
    svg.setAttribute("viewBox", `${place.x} ${place.y} ${room.width / scale} ${room.height / scale}`);
    svg.classList.toggle("graph-far", scale < FAR);
    moved({ ...place, width: room.width / scale, height: room.height / scale, fits: scale <= fitting() * 1.02 });
    remember();
  }

  // What is smaller than its frame is in the middle; what is larger never leaves it wholly.
  function kept(start, seen, size) {
    if (seen >= size) return (size - seen) / 2;
    const slack = seen * 0.4;
    return Math.max(-slack, Math.min(start, size - seen + slack));
  }

  function first() {
    const shape = picture().dataset.shape;
    const scale = fitting();
    const here = box.querySelector(".node-here");
    if (scale >= READABLE) return { shape, scale, x: 0, y: 0 };
    if (here) {
      const spot = middle(here);
      return centred({ shape, scale: 0.85 }, spot.x, spot.y);
    }
    // On a phone the beginning can be read, rather than all of it guessed.
    if (frame.clientWidth > NARROW) return { shape, scale, x: 0, y: 0 };
    return { ...centred({ shape, scale: READABLE }, 0, whole.height / 2), x: 0 };
  }

  function centred(at, x, y) {
    const room = measure();
    return { ...at, x: x - room.width / at.scale / 2, y: y - room.height / at.scale / 2 };
  }

  function zoom(factor, at) {
    const room = measure();
    const point = at ?? { x: room.width / 2, y: room.height / 2 };
    const scale = Math.max(smallest(), Math.min(LARGEST, place.scale * factor));
    place.x += point.x / place.scale - point.x / scale;
    place.y += point.y / place.scale - point.y / scale;
    place.scale = scale;
    apply();
  }

  function fit() {
    place = { shape: picture().dataset.shape, scale: fitting(), x: 0, y: 0 };
    apply();
  }

  function pan(x, y) {
    place.x += x / place.scale;
    place.y += y / place.scale;
    apply();
  }

  function remember() {
    try {
      sessionStorage.setItem(key, JSON.stringify(place));
    } catch {
      // Without storage every visit begins with the whole graph.
    }
  }

  function remembered() {
    try {
      const found = JSON.parse(sessionStorage.getItem(key));
      return [found?.scale, found?.x, found?.y].every(Number.isFinite) ? found : null;
    } catch {
      return null;
    }
  }

  function spotOf(event) {
    const edge = frame.getBoundingClientRect();
    return { x: event.clientX - edge.left, y: event.clientY - edge.top };
  }

  frame.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey && !event.metaKey && box.dataset.wheel !== "zoom") return;
      event.preventDefault();
      zoom(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0015)), spotOf(event));
    },
    { passive: false },
  );

  startDragging(frame, { pan, zoom, spotOf });

  frame.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const act = {
      ArrowLeft: () => pan(-MOVE, 0),
      ArrowRight: () => pan(MOVE, 0),
      ArrowUp: () => pan(0, -MOVE),
      ArrowDown: () => pan(0, MOVE),
      "+": () => zoom(STEP),
      "=": () => zoom(STEP),
      "-": () => zoom(1 / STEP),
      0: fit,
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });

  box.addEventListener("click", (event) => {
    const wish = event.target.closest("[data-zoom]")?.dataset.zoom;
    if (wish === "fit") fit();
    else if (wish) zoom(wish === "in" ? STEP : 1 / STEP);
  });

  // Who walks through the nodes with the keyboard sees the one they are at.
  frame.addEventListener("focusin", (event) => {
    const node = event.target.closest(".node");
    if (node?.matches(":focus-visible")) bring(node, place.scale);
  });

  function bring(node, scale = Math.max(place.scale, 0.9)) {
    const spot = middle(node);
    const room = measure();
    const inside =
      scale === place.scale &&
      spot.x > place.x && spot.x < place.x + room.width / scale &&
      spot.y > place.y && spot.y < place.y + room.height / scale;
    frame.scrollTo(0, 0);
    if (inside) return;
    place = centred({ ...place, scale }, spot.x, spot.y);
    apply();
  }

  new ResizeObserver(apply).observe(frame);

  return {
    apply,
    bring,
    centre(x, y) {
      place = centred(place, x, y);
      apply();
    },
  };
}

/** Where the middle of a node is, in the graph's own measure. */
export function middle(node) {
  const { e: x, f: y } = node.transform.baseVal.consolidate().matrix;
  const { width, height } = node.querySelector(".node-box").getBBox();
  return { x: x + width / 2, y: y + height / 2 };
}

// One finger or the mouse moves the picture, two fingers zoom it. A drag is not a click.
function startDragging(frame, { pan, zoom, spotOf }) {
  const fingers = new Map();
  let dragged = false;

  frame.addEventListener("dragstart", (event) => event.preventDefault());

  frame.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    fingers.set(event.pointerId, { ...spotOf(event), begun: spotOf(event) });
    if (fingers.size === 1) dragged = false;
  });

  function distance() {
    const [one, other] = [...fingers.values()];
    return Math.hypot(one.x - other.x, one.y - other.y) || 1;
  }

  frame.addEventListener("pointermove", (event) => {
    const finger = fingers.get(event.pointerId);
    if (!finger) return;
    const now = spotOf(event);
    if (!dragged && Math.hypot(now.x - finger.begun.x, now.y - finger.begun.y) < DRAGGED) return;
    if (!dragged) {
      dragged = true;
      frame.setPointerCapture(event.pointerId);
      frame.classList.add("is-dragged");
    }
    if (fingers.size === 1) pan(finger.x - now.x, finger.y - now.y);
    const before = fingers.size === 2 ? distance() : 0;
    finger.x = now.x;
    finger.y = now.y;
    if (before) {
      const [one, other] = [...fingers.values()];
      zoom(distance() / before, { x: (one.x + other.x) / 2, y: (one.y + other.y) / 2 });
    }
  });

  for (const over of ["pointerup", "pointercancel"]) {
    frame.addEventListener(over, (event) => {
      fingers.delete(event.pointerId);
      if (!fingers.size) frame.classList.remove("is-dragged");
    });
  }

  frame.addEventListener(
    "click",
    (event) => {
      if (dragged) event.preventDefault();
      dragged = false;
    },
    true,
  );
}
