// A small map of the whole graph with a frame around what is seen, while not all of it is.

const WIDTH = 176;
const HEIGHT = 120;

export function overview(box) {
  const map = box.querySelector(".graph-map");
  const frame = map.querySelector(".map-view");
  let move = () => {};

  function draw() {
    const svg = box.querySelector("svg.graph");
    const width = Number(svg.getAttribute("width"));
    const height = Number(svg.getAttribute("height"));
    const scale = Math.min(WIDTH / width, HEIGHT / height);
    map.setAttribute("width", width * scale);
    map.setAttribute("height", height * scale);
    map.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const one = svg.querySelector(".node-box");
    const [w, h] = ["width", "height"].map((name) => one?.getAttribute(name));
    const boxes = [...svg.querySelectorAll(".node")].map((node) => {
      const [x, y] = node.getAttribute("transform").match(/[\d.]+/g);
      return `M${x} ${y}h${w}v${h}h-${w}z`;
    });
    map.querySelector(".map-nodes").setAttribute("d", boxes.join(""));
  }

  function show({ x, y, width, height, fits }) {
    map.toggleAttribute("hidden", fits);
    for (const [name, value] of Object.entries({ x, y, width, height })) frame.setAttribute(name, value);
  }

  function follow(event) {
    const edge = map.getBoundingClientRect();
    const [, , width, height] = map.getAttribute("viewBox").split(" ").map(Number);
    move(((event.clientX - edge.left) / edge.width) * width, ((event.clientY - edge.top) / edge.height) * height);
  }

  map.addEventListener("pointerdown", (event) => {
    map.setPointerCapture(event.pointerId);
    follow(event);
  });
  map.addEventListener("pointermove", (event) => {
    if (map.hasPointerCapture(event.pointerId)) follow(event);
  });

  return {
    draw,
    show,
    onMove(act) {
      move = act;
    },
  };
}
