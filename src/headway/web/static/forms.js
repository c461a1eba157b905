// A form is sent once, however often it is clicked; filters answer while one types; boxes that
// stand for all others follow them.

const WAIT = 250;

function once(event) {
  const form = event.target;
  if (event.defaultPrevented || form.method !== "post") return;
  if (form.dataset.sent) {
    event.preventDefault();
    event.stopImmediatePropagation();
    return;
  }
  form.dataset.sent = "yes";
  form.classList.add("is-busy");
}

function again() {
  for (const form of document.querySelectorAll("form[data-sent]")) {
    delete form.dataset.sent;
    form.classList.remove("is-busy");
  }
}

function filterSoon() {
  let timer;
  document.addEventListener("input", (event) => {
    const form = event.target.closest("form[data-filter]");
    if (!form) return;
    clearTimeout(timer);
    timer = setTimeout(() => form.requestSubmit(), event.target.localName === "select" ? 0 : WAIT);
  });
}

function count(table) {
  const boxes = [...table.querySelectorAll("tbody input[type=checkbox][name=id]")];
  const ticked = boxes.filter((box) => box.checked);
  for (const box of boxes) box.closest("tr").setAttribute("aria-selected", String(box.checked));
  const all = table.querySelector("[data-all]");
  if (all) {
    all.checked = boxes.length > 0 && ticked.length === boxes.length;
    all.indeterminate = ticked.length > 0 && ticked.length < boxes.length;
  }
  const form = table.closest("form");
  form?.querySelectorAll("[data-ticked]").forEach((place) => {
    place.textContent = String(ticked.length);
  });
  form?.querySelectorAll("[data-needs-ticked]").forEach((button) => {
    button.disabled = ticked.length === 0;
  });
}

function tickAll() {
  const tables = () => document.querySelectorAll("table[data-ticking]").forEach(count);
  tables();
  document.addEventListener("htmx:afterSwap", tables);
  document.addEventListener("change", (event) => {
    const table = event.target.closest("table[data-ticking]");
    if (!table) return;
    if (event.target.hasAttribute("data-all")) {
      table.querySelectorAll("tbody input[name=id]").forEach((box) => {
        box.checked = event.target.checked;
      });
    }
    count(table);
  });
}

// Rows of a list in a generated form: the template has one row more than the list.
function moreRows() {
  document.addEventListener("click", (event) => {
    const add = event.target.closest("[data-add-row]");
    const remove = event.target.closest("[data-remove-row]");
    if (remove) remove.closest("[data-row]").remove();
    if (!add) return;
    const list = add.closest("[data-rows]");
    const number = String(Number(list.dataset.next));
    list.dataset.next = String(Number(number) + 1);
    const row = list.querySelector("template").content.cloneNode(true);
    for (const element of row.querySelectorAll("*")) {
      for (const { name, value } of [...element.attributes]) {
        if (value.includes("__n__")) element.setAttribute(name, value.replaceAll("__n__", number));
      }
    }
    list.querySelector("[data-rows-end]").before(row);
  });
}

// Every form that is to be done once brings a key; where the server gave none, one is made here.
function bringKeys() {
  for (const field of document.querySelectorAll("input[data-once]")) {
    if (!field.value) field.value = crypto.getRandomValues(new Uint32Array(4)).join("-");
  }
}

function chooseModes() {
  for (const whole of document.querySelectorAll("[data-input-modes]")) {
    const chosen = whole.querySelector("input[name=input-mode]:checked")?.value;
    if (!chosen) continue;
    for (const part of whole.querySelectorAll("[data-input-mode]")) {
      part.hidden = part.dataset.inputMode !== chosen;
    }
  }
}

export function startForms() {
  document.addEventListener("submit", once);
  window.addEventListener("pageshow", again);
  document.addEventListener("htmx:afterRequest", again);
  for (const name of ["htmx:afterSwap", "headway:changed"]) {
    document.addEventListener(name, () => {
      bringKeys();
      chooseModes();
    });
  }
  document.addEventListener("change", (event) => {
    if (event.target.name === "input-mode") chooseModes();
  });
  bringKeys();
  chooseModes();
  filterSoon();
  tickAll();
  moreRows();
}
