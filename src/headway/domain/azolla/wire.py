"""JSON as deployments exchange it: strict, so that nothing means two things or breaks a reader."""

import json
import math
from typing import Any

DEEPEST = 32


class Unreadable(ValueError):
    """Bytes that are no JSON, or JSON that nobody here would write."""


def read_json(body: bytes) -> Any:
    """The value in *body*: UTF-8, no NaN, no key twice, nested at most 32 deep, no NUL in texts.

    >>> read_json(b'{"limit": 5}')
    {'limit': 5}
    >>> read_json(b'{"limit": NaN}')
    Traceback (most recent call last):
    headway.domain.azolla.wire.Unreadable: NaN is no value
    """
    try:
        value = json.loads(
            body.decode("utf-8"), parse_constant=_refuse_constant, object_pairs_hook=_without_twins
        )
    except Unreadable:
        raise
    except RecursionError:
        raise Unreadable("nested too deeply") from None
    except ValueError as error:
        raise Unreadable(f"no JSON: {type(error).__name__}") from None
    _check(value)
    return value


def write_json(value: Any) -> bytes:
    """*value* in ASCII, without spaces.

    >>> write_json({"title": "Zürich"})
    b'{"title":"Z\\\\u00fcrich"}'
    """
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def _refuse_constant(name: str) -> Any:
    raise Unreadable(f"{name} is no value")


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Unreadable("a key stands twice in one object")
    return found


def _check(value: Any) -> None:
    """Level by level, because a recursive walk is what deep nesting would break."""
    level = [value]
    for _ in range(DEEPEST):
        for one in level:
            if isinstance(one, str):
                _check_text(one)
            elif isinstance(one, float) and not math.isfinite(one):
                raise Unreadable("a number is too large")
        level = [inner for one in level for inner in _within(one)]
        if not level:
            return
    raise Unreadable(f"nested deeper than {DEEPEST}")


def _within(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    return value if isinstance(value, list) else []


def _check_text(text: str) -> None:
    """PostgreSQL stores no NUL, and a lone surrogate is no character."""
    if "\0" in text:
        raise Unreadable("a text holds NUL")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Unreadable("a text holds a lone surrogate") from None
