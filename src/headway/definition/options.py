"""The options every scheduling call shares, checked in one place."""

import difflib
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, TypedDict, get_args

from headway.domain.dependencies import Join
from headway.domain.due import MisfirePolicy
from headway.domain.exclusion_kinds import Exclusion
from headway.domain.manifest import Group, WhenBusy, checked_priority
from headway.domain.retry import RetryPolicy
from headway.domain.text import shown
from headway.domain.timing import FirstRun
from headway.errors import DefinitionError


class CommonOptions(TypedDict, total=False):
    """What may be said about any manifest."""

    group: str | Group
    priority: int
    max_retries: int
    retry: RetryPolicy
    timeout: timedelta
    enabled: bool
    allow_overlap: bool


class ScheduleOptions(CommonOptions, total=False):
    """What may be said about a manifest that runs by time."""

    misfire: MisfirePolicy | str
    misfire_threshold: timedelta
    catch_up_limit: int
    variance: timedelta
    exclude: Iterable[Exclusion]
    first_run: FirstRun | str
    tz: str


class DependentOptions(CommonOptions, total=False):
    """What may be said about a manifest that runs after others."""

    join: Join
    dormant: bool
    when_busy: WhenBusy | str


TIMED = frozenset(ScheduleOptions.__annotations__)
DEPENDENT = frozenset(DependentOptions.__annotations__)
ONLY_BY_TIME = TIMED - DEPENDENT
ONLY_AFTER_PARENTS = DEPENDENT - TIMED


def check_options(subject: str, given: Mapping[str, Any], *, dependent: bool) -> None:
    """Refuse options that do not exist, or not for this kind of manifest, or are out of range.

    >>> check_options("load", {"priority": 3}, dependent=True)
    """
    allowed = DEPENDENT if dependent else TIMED
    for name in given:
        if name not in allowed:
            raise DefinitionError(f"{subject}: {_misplaced(name, allowed, dependent)}")
    for name, value in given.items():
        check = _CHECKS.get(name)
        if check is not None:
            check(subject, value)
    if given.get("when_busy") is not None and not given.get("dormant"):
        raise DefinitionError(f"{subject}: when_busy is about activations and needs dormant=True")
    if given.get("allow_overlap") and given.get("dormant"):
        raise DefinitionError(
            f"{subject}: allow_overlap = True: must be left out with dormant=True, where when_busy "
            'says what becomes of an activation during a run; for example when_busy="keep"'
        )


def _misplaced(name: str, allowed: Iterable[str], dependent: bool) -> str:
    if dependent and name in ONLY_BY_TIME:
        return f"option {name!r} is about time, and a dependent has none; leave it out"
    if not dependent and name in ONLY_AFTER_PARENTS:
        return f"option {name!r} is for dependents; declare it with include or then_include"
    close = difflib.get_close_matches(name, allowed, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(sorted(allowed))}"
    return f"no option is called {name!r}; {hint}"


def _refused(subject: str, name: str, value: object, rule: str) -> DefinitionError:
    return DefinitionError(f"{subject}: {name} = {shown(value)}: {rule}")


def _one_of(name: str, allowed: Iterable[str]) -> Any:
    words = [str(word) for word in allowed]

    def check(subject: str, value: object) -> None:
        if value not in words:
            rule = f"must be one of {', '.join(map(repr, words))}; for example {words[0]!r}"
            raise _refused(subject, name, value, rule)

    return check


def _flag(name: str) -> Any:
    def check(subject: str, value: object) -> None:
        if not isinstance(value, bool):
            raise _refused(subject, name, value, "must be True or False")

    return check


def _instance(name: str, kind: type[Any], example: str) -> Any:
    def check(subject: str, value: object) -> None:
        if not isinstance(value, kind):
            raise _refused(
                subject, name, value, f"must be a {kind.__name__}; for example {example}"
            )

    return check


_CHECKS = {
    "priority": checked_priority,
    "retry": _instance("retry", RetryPolicy, "RetryPolicy(delay=timedelta(minutes=1))"),
    "enabled": _flag("enabled"),
    "allow_overlap": _flag("allow_overlap"),
    "dormant": _flag("dormant"),
    "misfire": _one_of("misfire", MisfirePolicy),
    "first_run": _one_of("first_run", FirstRun),
    "join": _one_of("join", get_args(Join)),
    "when_busy": _one_of("when_busy", WhenBusy),
}
