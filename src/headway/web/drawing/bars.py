"""Where the time of one execution went: its steps."""

from markupsafe import Markup

from headway.web.drawing.markup import element, percent, title
from headway.web.drawing.words import lasted, state_class

STEP_HEIGHT = 12
_NARROWEST = 0.006


def step_bar(begins: float, seconds: float, whole: float, state: str, label: str = "") -> Markup:
    """One step on the line of the whole run; *begins*, *seconds* and *whole* are in seconds.

    Rows of a table with the same *whole* are a waterfall.

    >>> step_bar(1.0, 2.0, 4.0, "completed", "load")
    Markup('<svg class="step-bar" ... aria-label="load: 2.0 s, 1.0 s after the start">...</svg>')
    """
    whole = max(whole, begins + seconds, 0.001)
    width = max(seconds / whole, _NARROWEST)
    x = min(begins / whole, 1 - width)
    words = f"{lasted(seconds)}, {lasted(begins)} after the start"
    words = f"{label}: {words}" if label else words
    track = element("rect", class_="step-track", x=0, y=0, width="100%", height=STEP_HEIGHT, rx=2)
    bar = element(
        "rect",
        class_=f"run {state_class(state)}",
        x=percent(x),
        y=0,
        width=percent(width),
        height=STEP_HEIGHT,
        rx=2,
    )
    return element(
        "svg",
        title(words),
        track,
        bar,
        class_="step-bar",
        width="100%",
        height=STEP_HEIGHT,
        role="img",
        aria_label=words,
    )
