// Turns one element into another by changing only what differs, so that a refresh moves nothing,
// keeps the focus, what is selected, ticked or unfolded, and an open dialog.

const ELEMENT = 1;

/** Make *old* like *fresh*; both are the same kind of element. */
export function morph(old, fresh) {
  if (old.isEqualNode(fresh) || old.hasAttribute("data-keep")) return;
  if (old.localName === "dialog" && old.open) return;
  morphAttributes(old, fresh);
  if (old.localName === "textarea" && old !== document.activeElement) {
    if (old.defaultValue !== fresh.defaultValue) old.value = fresh.defaultValue;
  }
  morphChildren(old, fresh);
}

function morphAttributes(old, fresh) {
  const unfolded = old.localName === "details" ? "open" : "";
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && name !== unfolded) old.removeAttribute(name);
  }
  for (const { name, value } of [...fresh.attributes]) {
    if (old.getAttribute(name) === value || name === unfolded) continue;
    old.setAttribute(name, value);
    if (old === document.activeElement) continue;
    if (name === "value" && "value" in old) old.value = value;
    if (name === "checked") old.checked = true;
  }
}

function morphChildren(old, fresh) {
  const named = new Map();
  for (const child of old.children) if (child.id) named.set(child.id, child);
  let place = old.firstChild;
  for (const child of [...fresh.childNodes]) {
    const match = child.id ? named.get(child.id) : alike(place, child) ? place : null;
    if (!match) {
      old.insertBefore(child, place);
      continue;
    }
    if (match === place) place = place.nextSibling;
    else old.insertBefore(match, place);
    change(match, child);
  }
  while (place) {
    const next = place.nextSibling;
    place.remove();
    place = next;
  }
}

function alike(old, fresh) {
  if (!old || old.nodeType !== fresh.nodeType || old.id) return false;
  return old.nodeType !== ELEMENT || (old.localName === fresh.localName && !fresh.id);
}

function change(old, fresh) {
  if (old.nodeType === ELEMENT) morph(old, fresh);
  else if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
}

export function startMorphing() {
  window.htmx?.defineExtension("morph", {
    isInlineSwap: (style) => style === "morph",
    handleSwap(style, target, fragment) {
      if (style !== "morph") return false;
      const fresh = fragment.firstElementChild;
      if (fresh) morph(target, fresh);
      return [target];
    },
  });
}
