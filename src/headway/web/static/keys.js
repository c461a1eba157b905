// Keyboard: g and a letter goes somewhere, / searches, ? shows the keys, . pauses the refresh.

const WAIT = 1200;
let going = 0;

function typing(target) {
  return target.isContentEditable || /^(input|textarea|select)$/.test(target.localName);
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
  if (document.querySelector("dialog[open]")) return;
  const { key } = event;
  if (going && Date.now() - going < WAIT) {
    going = 0;
    const link = document.querySelector(`[data-key="${CSS.escape(key)}"]`);
    if (link) {
      event.preventDefault();
      link.click();
    }
    return;
  }
  going = key === "g" ? Date.now() : 0;
  if (key === "/") {
    const search = document.querySelector("main [data-search]") ?? document.querySelector("[data-search]");
    if (!search) return;
    event.preventDefault();
    search.focus();
    search.select();
  }
  if (key === "?") document.getElementById("keys")?.showModal();
  if (key === ".") document.getElementById("live")?.click();
}

export function startKeys() {
  document.addEventListener("keydown", onKey);
}
