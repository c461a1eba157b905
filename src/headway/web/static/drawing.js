// Writes the moments in drawings in the reader's zone: they come as UTC text with the instant beside.

const styles = {
  second: { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" },
  time: { hour: "2-digit", minute: "2-digit", hourCycle: "h23" },
  day: { day: "numeric", month: "short" },
  title: { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23" },
};
const forms = Object.fromEntries(
  Object.entries(styles).map(([name, style]) => [name, new Intl.DateTimeFormat(undefined, style)]),
);

function said(mark, moment) {
  if (mark.dataset.words !== undefined) return `${forms.title.format(moment)}, ${mark.dataset.words}`;
  const midnight = moment.getHours() === 0 && moment.getMinutes() === 0;
  const style = mark.dataset.style;
  if (style === "day" && !midnight) return forms.title.format(moment);
  return forms[style === "time" && midnight ? "day" : style].format(moment);
}

function relabel() {
  for (const mark of document.querySelectorAll("svg [data-instant]")) {
    const moment = new Date(mark.dataset.instant);
    if (Number.isNaN(moment.getTime())) continue;
    const text = said(mark, moment);
    if (mark.textContent !== text) mark.textContent = text;
  }
}

relabel();
document.addEventListener("htmx:afterSwap", relabel);
