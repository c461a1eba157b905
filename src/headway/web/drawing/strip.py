"""How the last runs of a manifest ended: one small bar each, as high as the run was long."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from markupsafe import Markup

from headway.web.drawing.markup import element, linked, title
from headway.web.drawing.words import counted, lasted, state_class, state_word

HEIGHT = 24
STEP = 6
BAR = 4
LOWEST = 5


@dataclass(frozen=True, slots=True)
class Ran:
    """One run: how it stands, how many seconds it took so far, and where to read more.

    >>> Ran("completed", 1.5).state
    'completed'
    """

    state: str
    seconds: float | None = None
    note: str = ""
    href: str | None = None


def history_strip(runs: Sequence[Ran], places: int = 20) -> Markup:
    """The newest runs, oldest first, at the right end of *places*; free places are dots.

    >>> history_strip([Ran("failed", 2.0), Ran("completed", 1.0)], places=2)
    Markup('<svg class="strip" ... aria-label="last 2 runs: 1 failed, 1 completed">...</svg>')
    """
    shown = list(runs)[-places:]
    longest = max((one.seconds or 0 for one in shown), default=0)
    free = places - len(shown)
    dots = [_dot(index) for index in range(free)]
    bars = [_bar(free + index, one, longest) for index, one in enumerate(shown)]
    width = places * STEP
    return element(
        "svg",
        *dots,
        *bars,
        class_="strip",
        width=width,
        height=HEIGHT,
        viewBox=f"0 0 {width} {HEIGHT}",
        role="img" if not any(one.href for one in shown) else "group",
        aria_label=strip_words(shown),
    )


def strip_words(runs: Sequence[Ran]) -> str:
    """The strip in words.

    >>> strip_words([Ran("failed"), Ran("completed"), Ran("completed")])
    'last 3 runs: 2 completed, 1 failed'
    """
    if not runs:
        return "no runs yet"
    ends = Counter(state_word(one.state) for one in runs)
    parts = ", ".join(f"{count} {word}" for word, count in ends.most_common())
    return f"last {counted(len(runs), 'run')}: {parts}" if len(runs) > 1 else f"one run: {parts}"


def _dot(index: int) -> Markup:
    return element("circle", class_="strip-free", cx=index * STEP + BAR / 2, cy=HEIGHT - 1.5, r=1)


def _bar(index: int, run: Ran, longest: float) -> Markup:
    """The root of the duration: a run a hundred times longer does not flatten all others."""
    share = sqrt((run.seconds or 0) / longest) if longest > 0 else 1.0
    height = LOWEST + (HEIGHT - LOWEST) * share
    words = [state_word(run.state)]
    words += [f"in {lasted(run.seconds)}"] if run.seconds is not None else []
    words += [run.note] if run.note else []
    bar = element(
        "rect",
        title(" · ".join(words)),
        class_=f"run {state_class(run.state)}",
        x=index * STEP,
        y=HEIGHT - height,
        width=BAR,
        height=height,
        rx=1,
    )
    return linked(bar, run.href)
