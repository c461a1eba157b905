"""The kinds of value a setting can have: how each is read, and the rule it must meet.

Keywords are taken strictly (``True`` is not a number, ``"5"`` is not 5). Text from the environment
arrives as :class:`EnvironmentText` and is read leniently, since text is all there is.
"""

import math
import re
from dataclasses import dataclass
from datetime import timedelta
from pathlib import PurePath
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from headway.domain.due import MisfirePolicy

LONGEST = timedelta(days=3653)
SHORTEST = timedelta(milliseconds=10)
_UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?", re.ASCII)
_NUMBER = re.compile(r"\d{1,12}(?:\.\d{1,9})?", re.ASCII)
_FLAGS = {"true": True, "1": True, "yes": True, "on": True} | {
    "false": False,
    "0": False,
    "no": False,
    "off": False,
}


class EnvironmentText(str):
    """A setting's text as found in an environment variable.

    >>> EnvironmentText("5") == "5"
    True
    """

    __slots__ = ()


@dataclass(frozen=True)
class Rule:
    """What a setting must be, as the second half of a sentence, with an example value.

    >>> Rule("must be a number from 0 to 31", 16).example
    16
    """

    text: str
    example: Any


def parse_duration(value: object) -> timedelta:
    """Return a timedelta, seconds, or text such as ``90s``, ``1h30m``, ``30d`` as a timedelta.

    >>> parse_duration("1h30m")
    datetime.timedelta(seconds=5400)
    """
    if isinstance(value, timedelta):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return _seconds(value)
    if isinstance(value, str) and len(value) <= 64:
        return _duration_from_text(value.strip().lower())
    raise ValueError("not a duration")


def as_text(value: object) -> str:
    """Return *value* as one would write it in an environment variable.

    >>> as_text(timedelta(minutes=90))
    '1h30m'
    """
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, timedelta):
        return _duration_text(value)
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value)


def _seconds(value: float) -> timedelta:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("not a finite number")
    try:
        return timedelta(seconds=value)
    except OverflowError:
        raise ValueError("too large") from None


def _duration_from_text(text: str) -> timedelta:
    if _NUMBER.fullmatch(text):
        return _seconds(float(text))
    found = _DURATION.fullmatch(text)
    if not text or not found:
        raise ValueError("not a duration")
    parts = zip(found.groups(), _UNITS.values(), strict=True)
    return _seconds(sum(float(amount) * size for amount, size in parts if amount))


def _duration_text(value: timedelta) -> str:
    seconds, parts = value.total_seconds(), []
    for unit, size in _UNITS.items():
        count, seconds = (seconds, 0.0) if unit == "s" else divmod(seconds, size)
        if count:
            parts.append(f"{count:g}{unit}")
    return "".join(parts) or "0s"


def _flag(value: object) -> object:
    return _FLAGS.get(value.strip().lower()) if isinstance(value, EnvironmentText) else value


def _whole(value: object) -> object:
    if isinstance(value, EnvironmentText) and re.fullmatch(r"-?[0-9]{1,12}", value.strip()):
        return int(value)
    return value


def _number(value: object) -> object:
    if isinstance(value, EnvironmentText) and _NUMBER.fullmatch(value.strip()):
        return float(value)
    return value


def _optional(value: object) -> object:
    if isinstance(value, EnvironmentText) and value.strip().lower() in ("", "none"):
        return None
    return _whole(value)


def _lease(value: object) -> object:
    if isinstance(value, EnvironmentText) and value.strip().lower() in ("", "none"):
        return None
    return None if value is None else parse_duration(value)


def _path(value: object) -> object:
    if isinstance(value, EnvironmentText) and value.strip().lower() in ("", "none"):
        return None
    return str(value) if isinstance(value, PurePath) else value


def _names(value: object) -> object:
    if isinstance(value, EnvironmentText):
        return tuple(name.strip() for name in value.split(",") if name.strip())
    return tuple(value) if isinstance(value, (list, set, frozenset)) else value


def _policy(value: object) -> object:
    if value == MisfirePolicy.CATCH_UP:
        # A run that ends must know it too, and knows only its own manifest.
        raise ValueError("catching up is for single manifests")
    return MisfirePolicy(value) if isinstance(value, str) else value


Flag = Annotated[bool, BeforeValidator(_flag), Rule("must be true or false", True)]
Count = Annotated[
    int,
    Field(ge=1, le=1_000_000),
    BeforeValidator(_whole),
    Rule("must be a whole number from 1 to 1000000", 100),
]
Workers = Annotated[
    int,
    Field(ge=1, le=4096),
    BeforeValidator(_whole),
    Rule("must be a whole number from 1 to 4096", 4),
]
Retries = Annotated[
    int,
    Field(ge=0, le=1_000_000),
    BeforeValidator(_whole),
    Rule("must be a whole number from 0 to 1000000", 3),
]
Priority = Annotated[
    int,
    Field(ge=0, le=31),
    BeforeValidator(_whole),
    Rule("must be a whole number from 0 to 31", 16),
]
Limit = Annotated[
    Annotated[int, Field(ge=1, le=1_000_000)] | None,
    BeforeValidator(_optional),
    Rule("must be a whole number from 1 to 1000000, or none for no limit", 100),
]
Multiplier = Annotated[
    float,
    Field(ge=1, le=100, allow_inf_nan=False),
    BeforeValidator(_number),
    Rule("must be a number from 1 to 100", 2.0),
]
Fraction = Annotated[
    float,
    Field(ge=0, le=1, allow_inf_nan=False),
    BeforeValidator(_number),
    Rule("must be a number from 0 to 1", 0.2),
]
Period = Annotated[
    timedelta,
    Field(ge=SHORTEST, le=LONGEST),
    BeforeValidator(parse_duration),
    Rule("must be a duration from 0.01 seconds to 10 years", timedelta(minutes=5)),
]
Delay = Annotated[
    timedelta,
    Field(ge=timedelta(0), le=LONGEST),
    BeforeValidator(parse_duration),
    Rule("must be a duration from 0 seconds to 10 years", timedelta(minutes=5)),
]
Lease = Annotated[
    Annotated[timedelta, Field(ge=timedelta(seconds=1), le=timedelta(hours=1))] | None,
    BeforeValidator(_lease),
    Rule("must be a duration from 1 second to 1 hour, or none", timedelta(seconds=15)),
]
File = Annotated[
    Annotated[str, Field(min_length=1, max_length=4096)] | None,
    BeforeValidator(_path),
    Rule("must be the path of a file, or none", "azolla.toml"),
]
Policy = Annotated[
    MisfirePolicy,
    BeforeValidator(_policy),
    Rule("must be fire_once_now or do_nothing", "fire_once_now"),
]
Names = Annotated[
    tuple[Annotated[str, Field(min_length=1, max_length=255)], ...],
    BeforeValidator(_names),
    Rule("must be a list of workflow names", ("nightly-report",)),
]
