// Lights up a node with everything before and after it: the one under the pointer, or the one that
// was searched for.

export function lighting(box) {
  const field = box.querySelector("[data-find]");
  const told = box.querySelector("[data-found]");
  const nodes = () => [...box.querySelectorAll(".graph-nodes > .node")];
  const edges = () => [...box.querySelectorAll(".graph-edges > .edge")];
  let pick = () => {};
  let pinned = null;
  let pointed = null;
  let turn = 0;

  /** The numbers of all nodes from which one can be reached, or that can be reached from it. */
  function related(number) {
    const found = new Set([number]);
    for (const [from, to] of [["from", "to"], ["to", "from"]]) {
      const ahead = new Map();
      for (const edge of edges()) {
        const start = edge.dataset[from];
        if (!ahead.has(start)) ahead.set(start, []);
        ahead.get(start).push(edge.dataset[to]);
      }
      const walk = [number];
      const seen = new Set(walk);
      while (walk.length) {
        for (const next of ahead.get(walk.pop()) ?? []) {
          if (seen.has(next)) continue;
          seen.add(next);
          found.add(next);
          walk.push(next);
        }
      }
    }
    return found;
  }

  function matching() {
    const wanted = field.value.trim().toLowerCase();
    if (!wanted) return [];
    return nodes().filter((node) => node.dataset.name.toLowerCase().includes(wanted));
  }

  function apply() {
    const matches = matching();
    const centre = pointed ?? pinned;
    const lit = centre === null ? null : related(centre);
    const searching = field.value.trim() !== "" && centre === null;
    box.classList.toggle("graph-dimmed", lit !== null || searching);
    const found = new Set(matches);
    for (const node of nodes()) {
      const shown = lit ? lit.has(node.dataset.node) : found.has(node);
      node.classList.toggle("lit", shown);
      node.classList.toggle("node-found", found.has(node));
    }
    for (const edge of edges()) {
      edge.classList.toggle("lit", Boolean(lit?.has(edge.dataset.from) && lit.has(edge.dataset.to)));
    }
    if (field.value.trim() === "") told.textContent = "";
    else told.textContent = matches.length === 1 ? "1 found" : `${matches.length} found`;
  }

  function next() {
    const matches = matching();
    if (!matches.length) return;
    const node = matches[turn % matches.length];
    turn += 1;
    pinned = node.dataset.node;
    apply();
    pick(node);
  }

  field.addEventListener("input", () => {
    pinned = null;
    turn = 0;
    apply();
    const [only, ...others] = matching();
    if (only && !others.length) pick(only);
  });

  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      next();
    }
    if (event.key === "Escape") {
      field.value = "";
      pinned = null;
      apply();
    }
  });

  const view = box.querySelector(".graph-view");
  const point = (event) => {
    const number = event.target.closest?.(".node")?.dataset.node ?? null;
    if (number === pointed) return;
    pointed = number;
    apply();
  };
  view.addEventListener("pointerover", (event) => event.pointerType === "mouse" && point(event));
  view.addEventListener("pointerleave", () => {
    pointed = null;
    apply();
  });
  view.addEventListener("focusin", (event) => event.target.matches(":focus-visible") && point(event));
  view.addEventListener("focusout", () => {
    pointed = null;
    apply();
  });

  return {
    apply,
    onPick(act) {
      pick = act;
    },
  };
}
