"""A sign for each state: colour alone is not for every eye."""

from markupsafe import Markup

from headway.web.drawing.markup import element, number

SIDE = 12

_PLAY = "M3 1.8v8.4l7.2-4.2z"
_CROSS = "M2.5 2.5l7 7M9.5 2.5l-7 7"
_BARS = "M4 2.2v7.6M8 2.2v7.6"
_CLOCK = "M6 1.2a4.8 4.8 0 1 0 .01 0zM6 3.4V6l1.9 1.3"
_TICK = "M2 6.4l2.7 2.8L10 3.2"
_RING = "M6 2.4a3.6 3.6 0 1 0 .01 0z"
_BACK = "M10 9.4V5.6H2.4M5 2.8L2.2 5.6 5 8.4"

_SIGNS = {
    "running": _PLAY,
    "in_progress": _PLAY,
    "failed": _CROSS,
    "dead_letter": _CROSS,
    "disabled": _BARS,
    "cancelled": _BARS,
    "queued": _CLOCK,
    "pending": _CLOCK,
    "waiting": _CLOCK,
    "completed": _TICK,
    "handed_back": _BACK,
}


def icon(state: str, x: float, y: float) -> Markup:
    """The sign of a state, with its upper left corner at *x* and *y*.

    >>> icon("failed", 10, 20)
    Markup('<path class="node-icon" d="M2.5 2.5l7 7M9.5 2.5l-7 7" transform="translate(10 20)"/>')
    """
    place = f"translate({number(x)} {number(y)})"
    return element("path", class_="node-icon", d=_SIGNS.get(state, _RING), transform=place)
