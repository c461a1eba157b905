"""How many of a group's slots are taken, as a bar; one cell for each slot while there are few."""

from markupsafe import Markup

from headway.web.drawing.markup import element, joined, number, percent, title

MOST_CELLS = 20
HEIGHT = 8


def occupancy(active: int, cap: int | None, waiting: int = 0) -> Markup:
    """A bar as wide as its place: taken and free slots of a cap, or only what runs without one.

    >>> print(occupancy(1, 2))
    <svg class="occupancy" ... aria-label="1 of 2 slots taken">...</svg>
    """
    label = occupancy_words(active, cap, waiting)
    return element(
        "svg",
        title(label),
        occupancy_cells(active, cap),
        class_="occupancy",
        width="100%",
        height=HEIGHT,
        role="img",
        aria_label=label,
    )


def occupancy_words(active: int, cap: int | None, waiting: int = 0) -> str:
    """The same in words.

    >>> occupancy_words(3, 4, waiting=2)
    '3 of 4 slots taken, 2 waiting'
    >>> occupancy_words(3, None)
    '3 active, no cap'
    """
    said = f"{active:,} active, no cap" if cap is None else f"{active:,} of {cap:,} slots taken"
    if cap == 1:
        said = f"{active:,} of 1 slot taken"
    return f"{said}, {waiting:,} waiting" if waiting else said


def occupancy_cells(
    active: int, cap: int | None, place: tuple[float, float, float] | None = None
) -> Markup:
    """The rectangles of the bar alone, across the whole picture or at *place*: x, y and width.

    >>> occupancy_cells(0, 1, place=(10, 5, 40))
    Markup('<rect class="slot" x="10" y="5" width="40" height="8" rx="2"/>')
    """
    return joined([_cell(*cell, place=place) for cell in _cells(active, cap)])


def _cells(active: int, cap: int | None) -> list[tuple[str, float, float]]:
    """Class, start and width of each rectangle, as fractions of the whole width."""
    if cap is None:
        return [("slot slot-open", 0.0, 1.0)]
    taken = "slot slot-full" if active >= cap else "slot slot-taken"
    if active > cap:
        return [("slot slot-over", 0.0, 1.0)]
    if 0 < cap <= MOST_CELLS:
        gap = min(0.012, 0.2 / cap)
        width = (1 - gap * (cap - 1)) / cap
        kinds = [taken] * active + ["slot"] * (cap - active)
        return [(kind, index * (width + gap), width) for index, kind in enumerate(kinds)]
    cells = [("slot", 0.0, 1.0)]
    return cells if not active else [*cells, (taken, 0.0, active / cap)]


def _cell(
    kind: str, start: float, width: float, *, place: tuple[float, float, float] | None
) -> Markup:
    if place is None:
        return element(
            "rect", class_=kind, x=percent(start), y=0, width=percent(width), height=HEIGHT, rx=2
        )
    x, y, whole = place
    return element(
        "rect",
        class_=kind,
        x=x + start * whole,
        y=y,
        width=number(width * whole),
        height=HEIGHT,
        rx=2,
    )


def slots_text(active: int, cap: int | None) -> str:
    """The bar's numbers, for beside it.

    >>> slots_text(3, 4), slots_text(3, None)
    ('3/4', '3')
    """
    return f"{active}" if cap is None else f"{active}/{cap}"
