"""JSON as headway stores it: ASCII, without spaces, and without what other readers would refuse."""

import json
from collections import Counter
from typing import Any, NoReturn

from headway.definition.problems import Problem

NOT_FINITE = "NaN and infinity cannot be stored as JSON"


def to_json(plain: Any) -> str:
    """Plain data as text.

    >>> to_json({"name": "users"})
    '{"name":"users"}'
    """
    return _ENCODER.encode(plain)


def from_json(text: str) -> Any:
    """The plain data in a *text*.

    >>> from_json('{"name":"users"}'), from_json(" 5 ")
    ({'name': 'users'}, 5)
    """
    try:  # for every run: no detour
        value, end = _DECODER.raw_decode(text)
    except ValueError:
        end = -1
    # Else there is something around it, which headway has not written: that takes a closer look.
    return value if end == len(text) else _DECODER.decode(text)


def is_nested_within(value: Any, levels: int) -> bool:
    """Return whether lists and objects in *value* are nested at most *levels* deep.

    Written without recursion: deep values would exceed Python's limit.

    >>> is_nested_within([[1]], 2), is_nested_within({"a": [[]]}, 2)
    (True, False)
    """
    layer = [value]
    for _ in range(levels + 1):
        parts = [one for one in layer if isinstance(one, dict | list)]
        layer = [part for one in parts for part in (one.values() if isinstance(one, dict) else one)]
        if not parts:
            return True
    return False


def _refuse_constant(constant: str) -> NoReturn:
    raise Problem((), constant, NOT_FINITE)


def _refuse_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        [(twice, _)] = Counter(key for key, _ in pairs).most_common(1)
        raise Problem((), twice, "is the key of two values, and only one of them would be kept")
    return found


_ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_refuse_twice)
