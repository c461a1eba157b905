// Moments in the reader's zone, the exact instant on hover, and lengths of time that go on.

const UNITS = [
  [60, "s"],
  [60, "min"],
  [24, "h"],
  [Infinity, "d"],
];

const clock = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23",
});
const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const dayOfYear = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric" });
const exact = new Intl.DateTimeFormat(undefined, {
  weekday: "short", day: "numeric", month: "short", year: "numeric",
  hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3,
  hourCycle: "h23", timeZoneName: "longOffset",
});

let ahead = 0;

/** The server's clock now, as far as this page knows it. */
export const now = () => Date.now() - ahead;

/** How far *moment* is, in one unit: "3 s ago", "in 2 h". */
export function distance(moment, at = now()) {
  let amount = Math.abs(at - moment) / 1000;
  if (amount < 1) return "now";
  let unit = "s";
  for (const [size, name] of UNITS) {
    unit = name;
    if (amount < size) break;
    amount /= size;
  }
  const told = `${Math.floor(amount)} ${unit}`;
  return at > moment ? `${told} ago` : `in ${told}`;
}

/** A length of time as the server writes it: "1.2 s", "3 min 4 s". */
export function duration(milliseconds) {
  const seconds = Math.max(0, milliseconds) / 1000;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

function instant(moment) {
  const date = new Date(moment);
  const today = new Date(now());
  if (date.toDateString() === today.toDateString()) return clock.format(date);
  const named = date.getFullYear() === today.getFullYear() ? day : dayOfYear;
  return `${named.format(date)}, ${clock.format(date)}`;
}

function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function show(root) {
  for (const element of root.querySelectorAll("time[data-time]")) {
    const moment = Date.parse(element.dateTime);
    if (Number.isNaN(moment)) continue;
    if (!element.dataset.told) {
      element.dataset.told = element.title;
      element.title = `${exact.format(moment)}\n${element.dataset.told}`;
    }
    write(element, told(element, moment));
  }
  tick(root);
}

function told(element, moment) {
  if (element.dataset.time === "instant") return instant(moment);
  return distance(element.dataset.time === "until" ? Math.max(moment, now()) : moment);
}

function tick(root) {
  for (const element of root.querySelectorAll("[data-since]")) {
    write(element, duration(now() - Date.parse(element.dataset.since)));
  }
}

// The reader's clock may be wrong; the server's is told with every answer, to the second.
function compareClocks({ detail }) {
  const told = Date.parse(detail.xhr.getResponseHeader("Date") ?? "");
  if (Number.isNaN(told)) return;
  const difference = Date.now() - told;
  ahead = Math.abs(difference) > 5000 ? difference : 0;
}

export function startTimes() {
  show(document);
  document.addEventListener("htmx:afterRequest", compareClocks);
  document.addEventListener("htmx:afterSwap", () => show(document));
  document.addEventListener("headway:changed", () => show(document));
  setInterval(() => {
    if (document.hidden) return;
    for (const element of document.querySelectorAll('time[data-time]:not([data-time="instant"])')) {
      write(element, told(element, Date.parse(element.dateTime)));
    }
    tick(document);
  }, 1000);
}
