"""What pictures say in words: spans of time, numbers and states."""

from datetime import UTC, datetime

STATES = {
    "completed": "completed",
    "failed": "failed",
    "cancelled": "cancelled",
    "handed_back": "handed back",
    "in_progress": "running",
    "pending": "pending",
    "queued": "waiting",
    "running": "running",
    "waiting": "waiting",
    "idle": "idle",
    "disabled": "disabled",
    "dead_letter": "dead letter",
    "full": "full",
}

_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def state_word(state: str) -> str:
    """A state as people read it.

    >>> state_word("handed_back")
    'handed back'
    """
    return STATES.get(state, state.replace("_", " "))


def state_class(state: str) -> str:
    """The class that colours a state; what is not known looks idle.

    >>> state_class("failed"), state_class('"><script>')
    ('is-failed', 'is-idle')
    """
    return f"is-{state}" if state in STATES else "is-idle"


def lasted(seconds: float) -> str:
    """A span of time in its two largest units.

    >>> [lasted(one) for one in (0.0042, 1.26, 75, 3_700, 200_000)]
    ['4 ms', '1.3 s', '1 min 15 s', '1 h 1 min', '2 d 7 h']
    """
    if seconds < 0.9995:
        return f"{max(seconds, 0) * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for unit, word, smaller, small_word in (
        (_DAY, "d", _HOUR, "h"),
        (_HOUR, "h", _MINUTE, "min"),
        (_MINUTE, "min", 1, "s"),
    ):
        if whole >= unit:
            rest = whole % unit // smaller
            return (
                f"{whole // unit} {word} {rest} {small_word}" if rest else f"{whole // unit} {word}"
            )
    return f"{whole} s"


def counted(count: int, one: str, many: str | None = None) -> str:
    """A number with its noun.

    >>> counted(1, "run"), counted(1200, "run")
    ('1 run', '1,200 runs')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def compact(count: float) -> str:
    """A number in at most four characters, for places with little room.

    >>> [compact(one) for one in (7, 999, 1_234, 45_600, 1_200_000)]
    ['7', '999', '1.2k', '46k', '1.2M']
    """
    for limit, divisor, unit in (
        (1_000, 1, ""),
        (999_500, 1_000, "k"),
        (float("inf"), 1_000_000, "M"),
    ):
        if count < limit:
            value = count / divisor
            digits = 1 if unit and value < 9.95 else 0
            return f"{value:.{digits}f}".removesuffix(".0") + unit
    return str(count)


def utc(moment: datetime) -> str:
    """An instant as UTC text that a browser can read back.

    >>> utc(datetime(2026, 1, 5, 9, 0, tzinfo=UTC))
    '2026-01-05T09:00:00Z'
    """
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
