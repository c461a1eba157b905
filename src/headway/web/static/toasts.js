// Toasts come from the server in #toasts; they go away by themselves unless they tell of an error.

const STAYS = 6000;

function prepare(toast) {
  if (toast.dataset.ready) return;
  toast.dataset.ready = "yes";
  toast.querySelector("[data-dismiss]")?.addEventListener("click", () => toast.remove());
  if (toast.classList.contains("is-error")) return;
  let timer = setTimeout(() => toast.remove(), STAYS);
  toast.addEventListener("pointerenter", () => clearTimeout(timer));
  toast.addEventListener("pointerleave", () => {
    timer = setTimeout(() => toast.remove(), STAYS / 2);
  });
}

/** Say *text* in a toast made of the page's template. */
export function say(text) {
  const template = document.getElementById("toast-template");
  const place = document.getElementById("toasts");
  if (!template || !place) return;
  const toast = template.content.firstElementChild.cloneNode(true);
  toast.querySelector("p").textContent = text;
  place.append(toast);
  prepare(toast);
}

export function startToasts() {
  const all = () => document.querySelectorAll("#toasts .toast").forEach(prepare);
  all();
  document.addEventListener("htmx:afterSwap", all);
  document.addEventListener("htmx:oobAfterSwap", all);
}
