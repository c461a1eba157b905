"""How values are shown on pages: moments, lengths of time, numbers, payloads."""

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

from jinja2 import pass_context
from jinja2.runtime import Context
from markupsafe import Markup

NOTHING = "–"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# As the sentences of the read side write a moment.
_MOMENT = re.compile(r"(20\d\d-\d\d-\d\d \d\d:\d\d(?::\d\d)? UTC)")
_STEPS = ((60, "s"), (60, "min"), (24, "h"), (365, "d"))


def duration(value: timedelta | float | None) -> str:
    """A length of time as people say it.

    >>> duration(timedelta(milliseconds=1234)), duration(3725), duration(None)
    ('1.2 s', '1 h 2 min', '–')
    """
    if value is None:
        return NOTHING
    seconds = value.total_seconds() if isinstance(value, timedelta) else float(value)
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


def distance(moment: datetime, now: datetime) -> str:
    """How far *moment* is from *now*, in one unit.

    >>> now = datetime(2026, 1, 5, 9, tzinfo=UTC)
    >>> distance(now - timedelta(seconds=90), now), distance(now + timedelta(hours=3), now)
    ('1 min ago', 'in 3 h')
    """
    seconds = (now - moment).total_seconds()
    amount, unit = abs(seconds), "s"
    if amount < 1:
        return "now"
    for size, unit in _STEPS:
        if amount < size:
            break
        amount /= size if unit != "d" else 1
    told = f"{int(amount)} {unit}"
    return f"{told} ago" if seconds > 0 else f"in {told}"


def exact(moment: datetime) -> str:
    """A moment to the second, in UTC.

    >>> exact(datetime(2026, 1, 5, 9, tzinfo=UTC))
    '2026-01-05 09:00:00 UTC'
    """
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def instant(moment: datetime | None) -> str:
    """A moment as ``<time>``, which the page shows in the reader's zone.

    >>> str(instant(datetime(2026, 1, 5, 9, tzinfo=UTC)))[:40]
    '<time datetime="2026-01-05T09:00:00+00:0'
    """
    return NOTHING if moment is None else _time(moment, exact(moment), "instant")


def in_zone(sentence: str) -> Markup:
    """A sentence whose moments are shown in the reader's zone; all else stays the text it is.

    >>> str(in_zone("<b> not before 2026-01-05 09:00:00 UTC"))[:52]
    '&lt;b&gt; not before <time datetime="2026-01-05T09:0'
    """
    pieces = _MOMENT.split(sentence)
    told = [_moment(one) if at % 2 else Markup.escape(one) for at, one in enumerate(pieces)]
    return Markup("").join(told)


def _moment(text: str) -> Markup:
    try:
        moment = datetime.fromisoformat(text.removesuffix(" UTC")).replace(tzinfo=UTC)
    except ValueError:
        return Markup.escape(text)
    return _time(moment, exact(moment), "instant")


def roughly(length: timedelta) -> str:
    """A length of time in one unit.

    >>> roughly(timedelta(seconds=41.5)), roughly(timedelta(minutes=5))
    ('41 s', '5 min')
    """
    return distance(EPOCH, EPOCH + length).removesuffix(" ago")


@pass_context
def ago(context: Context, moment: datetime | None) -> str:
    """How long ago a moment was, or how far it is, with the exact one on hover.

    What a page asks for again and again tells the moment only, and the page works out the rest:
    else its answer would never be the same twice.
    """
    if moment is None:
        return NOTHING
    again = "hx-request" in context["request"].headers
    text = exact(moment) if again else distance(moment, context["now"])
    return _time(moment, text, "ago")


@pass_context
def until(context: Context, moment: datetime | None) -> str:
    """How far something that is to come is; what should be there already is there now."""
    if moment is None:
        return NOTHING
    again = "hx-request" in context["request"].headers
    text = exact(moment) if again else distance(max(moment, context["now"]), context["now"])
    return _time(moment, text, "until")


def _time(moment: datetime, text: str, kind: str) -> Markup:
    return Markup('<time datetime="{}" title="{}" data-time="{}">{}</time>').format(
        moment.astimezone(UTC).isoformat(), exact(moment), kind, text
    )


def number(value: float | None) -> str:
    """A number with its thousands apart.

    >>> number(1234567), number(0.5)
    ('1,234,567', '0.5')
    """
    if value is None:
        return NOTHING
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def pretty(value: Any) -> str:
    """A payload as indented JSON; stored text that is no JSON stays as it is.

    >>> pretty('{"table":"users"}').splitlines()[1]
    '  "table": "users"'
    """
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return str(value)
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


FILTERS = {
    "ago": ago,
    "duration": duration,
    "in_zone": in_zone,
    "instant": instant,
    "json": pretty,
    "number": number,
    "roughly": roughly,
    "until": until,
}
