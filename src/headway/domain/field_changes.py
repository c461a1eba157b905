"""What the code said about a manifest and what it says now, field by field, in words."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from headway.domain.exclusion_json import exclusions_from_json
from headway.domain.manifest import DORMANT
from headway.domain.schedule import Cron, schedule_from_fields
from headway.domain.text import printable
from headway.errors import HeadwayError

VALUE_LIMIT = 60
CONTEXT = 12
_SPAN = re.compile(r"datetime\.timedelta\(([^)]*)\)")

# What `declared` calls it, what people call it, and what nothing means.
PLAIN = (
    ("workflow", "workflow", "none"),
    ("group", "group", "none"),
    ("batch", "batch", "none"),
    ("priority", "priority", "default"),
    ("max_retries", "max retries", "default"),
    ("retry", "retry", "default"),
    ("timeout", "timeout", "default"),
    ("when_busy", "when busy", "default"),
    ("allow_overlap", "overlap allowed", "no"),
    ("input_type", "input type", "none"),
)
TIME = (
    ("misfire_policy", "misfire"),
    ("misfire_threshold", "misfire threshold"),
    ("catch_up_limit", "catch-up limit"),
    ("variance", "variance"),
    ("first_run", "first run"),
    ("tz", "time zone"),
)


@dataclass(frozen=True)
class FieldChange:
    """One value that becomes another; *before* is None where nothing was declared yet.

    ``operators`` is the value in force if somebody had changed it at run time: it is lost.

    >>> FieldChange("priority", "0", "10").after
    '10'
    """

    name: str
    before: str | None
    after: str | None
    operators: str | None = None


def in_words(declared: Mapping[str, Any]) -> dict[str, str]:
    """What a declared manifest says, readable; its switch and its parents are told elsewhere.

    >>> in_words({"kind": "dependent", "join": "any", "priority": 3})["runs"]
    'after any of its parents'
    """
    said = {"runs": _runs(declared)}
    for key, name, nothing in PLAIN:
        said[name] = _value(key, declared.get(key), nothing)
    time = declared.get("time") or {}
    for key, name in TIME:
        said[name] = _value(key, time.get(key), "default")
    said["exclusions"] = _exclusions(time.get("exclusions"))
    return said | _input(declared.get("input"))


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[FieldChange, ...]:
    """Every field of two declared manifests that reads differently, shortened to the difference.

    >>> differences({"priority": 0}, {"priority": 5})
    (FieldChange(name='priority', before='0', after='5', operators=None),)
    """
    was, becomes = in_words(before), in_words(after)
    return tuple(
        FieldChange(name, *shortened(was.get(name, "absent"), becomes.get(name, "absent")))
        for name in dict.fromkeys((*was, *becomes))
        if was.get(name) != becomes.get(name)
    )


def shortened(before: str, after: str) -> tuple[str, str]:
    """Both on one short line each, cut so that the difference is still to be seen.

    >>> shortened("x" * 90 + "1", "x" * 90 + "2")
    ('... xxxxxxxxxxxx1', '... xxxxxxxxxxxx2')
    """
    short = _one_line(before), _one_line(after)
    if before == after or short[0] != short[1]:
        return short
    same = next(
        (
            number
            for number, (one, two) in enumerate(zip(before, after, strict=False))
            if one != two
        ),
        min(len(before), len(after)),
    )
    begin = max(0, same - CONTEXT)
    return _one_line(f"... {before[begin:]}"), _one_line(f"... {after[begin:]}")


def switch(value: object) -> str:
    """A switch in words.

    >>> switch(True)
    'yes'
    """
    return "yes" if value else "no"


def _one_line(text: str) -> str:
    line = printable(text[: VALUE_LIMIT + 1], 8 * VALUE_LIMIT).replace("\n", " ").replace("\t", " ")
    return line if len(line) <= VALUE_LIMIT else f"{line[: VALUE_LIMIT - 4]} ..."


def _runs(declared: Mapping[str, Any]) -> str:
    kind = declared.get("kind")
    if kind == "dependent":
        return f"after {declared.get('join', 'all')} of its parents"
    if kind == DORMANT:
        return "when a parent activates it"
    fields = dict(declared.get("schedule") or {})
    try:
        if isinstance(at := fields.get("once_at"), str):
            fields["once_at"] = datetime.fromisoformat(at)
        schedule = schedule_from_fields(**fields)
    except (HeadwayError, TypeError, ValueError):
        return "unknown"
    words = schedule.describe()
    # Two expressions may read alike, and it is the expression that people search for.
    return f"{schedule.expression} = {words}" if isinstance(schedule, Cron) else words


def _value(key: str, value: Any, nothing: str) -> str:
    if value is None:
        return nothing
    if key == "allow_overlap":
        return switch(value)
    if key == "timeout":
        return str(timedelta(seconds=value))
    if key == "retry":
        return _SPAN.sub(_span, str(value)).removeprefix("RetryPolicy").strip("()")
    return str(value)


def _span(match: re.Match[str]) -> str:
    """``datetime.timedelta(days=1)`` as people write it."""
    named = (part.partition("=") for part in match[1].split(", ") if "=" in part)
    return str(timedelta(**{name: int(number) for name, _, number in named}))


def _exclusions(text: str | None) -> str:
    try:
        found = exclusions_from_json(text)
    except HeadwayError:
        return str(text)
    return "; ".join(f"{one.describe()} ({one.then})" for one in found) or "none"


def _input(text: str | None) -> dict[str, str]:
    """An object field by field, anything else as it is."""
    try:
        value = json.loads(text or "null")
    except ValueError:
        return {"input": str(text)}
    if not isinstance(value, dict):
        return {"input": json.dumps(value, ensure_ascii=False)}
    return {f"input.{key}": json.dumps(one, ensure_ascii=False) for key, one in value.items()}
