// Dialogs. A link with data-dialog opens the dialog instead of the page it leads to; a form with
// data-confirm is asked about first. Without script the link leads on and the form is sent.

function open(dialog) {
  if (!dialog.open) dialog.showModal();
  dialog.querySelector("[autofocus], .dialog-body input, .dialog-body textarea, .dialog-foot .button")?.focus();
}

function onClick(event) {
  const opener = event.target.closest("[data-dialog]");
  const wanted = opener && document.getElementById(opener.dataset.dialog);
  if (wanted && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
    event.preventDefault();
    open(wanted);
    return;
  }
  const fetcher = event.target.closest("[data-fetch-dialog]");
  const place = document.getElementById("fetched");
  if (fetcher && place && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
    event.preventDefault();
    fetchInto(place, fetcher.href);
    return;
  }
  const closer = event.target.closest("[data-close]");
  if (closer) {
    event.preventDefault();
    closer.closest("dialog").close();
    return;
  }
  if (event.target.localName === "dialog" && event.target.open) closeOutside(event);
}

// A link with data-fetch-dialog shows the form of the page it leads to, without leaving this one.
async function fetchInto(dialog, address) {
  const answer = await fetch(address, { headers: { Accept: "text/html" } });
  if (!answer.ok || !show(dialog, await answer.text())) location.assign(address);
}

function show(dialog, text) {
  const form = new DOMParser().parseFromString(text, "text/html").querySelector("#main form.panel");
  if (!form) return false;
  form.classList.remove("panel", "narrow");
  form.querySelector(".panel-foot a")?.setAttribute("data-close", "");
  dialog.setAttribute("aria-label", form.querySelector("h1")?.textContent ?? "Form");
  dialog.replaceChildren(document.adoptNode(form));
  window.htmx?.process(dialog);
  document.dispatchEvent(new CustomEvent("headway:changed"));
  open(dialog);
  return true;
}

// What is wrong with a form in a dialog is shown there; what was right leads on.
function onAnswer(event) {
  const dialog = event.detail.requestConfig?.elt?.closest?.("#fetched");
  if (!dialog) return;
  if (event.detail.xhr.status === 422 && show(dialog, event.detail.xhr.responseText)) {
    event.detail.shouldSwap = false;
  } else {
    dialog.close();
  }
}

function closeOutside(event) {
  const box = event.target.getBoundingClientRect();
  const inside = event.clientX >= box.left && event.clientX <= box.right
    && event.clientY >= box.top && event.clientY <= box.bottom;
  if (!inside) event.target.close();
}

function onSubmit(event) {
  const form = event.target;
  const asking = event.submitter?.dataset.confirm ?? form.dataset.confirm;
  const dialog = document.getElementById("confirm");
  if (!asking || !dialog || form.dataset.confirmed) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  dialog.querySelector("[data-question]").textContent = asking;
  const button = dialog.querySelector("[data-yes]");
  button.textContent = event.submitter?.dataset.yes ?? "Go on";
  button.onclick = () => {
    dialog.close();
    form.dataset.confirmed = "yes";
    form.requestSubmit(event.submitter);
    delete form.dataset.confirmed;
  };
  open(dialog);
}

export function startDialogs() {
  document.addEventListener("click", onClick);
  document.addEventListener("submit", onSubmit, true);
  document.addEventListener("htmx:beforeSwap", onAnswer);
}
