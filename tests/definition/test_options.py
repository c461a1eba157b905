"""Options of the scheduling calls: the same everywhere, and nonsense refused at the call."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headway import Group, Headway, Item, RetryPolicy, cron, every, exclude, once
from headway.definition.builder import Chain
from headway.domain.due import MisfirePolicy
from headway.domain.manifest import Manifest, WhenBusy
from headway.domain.time_options import TimeOptions
from headway.domain.timing import FirstRun
from headway.errors import DefinitionError

HOURLY = every(hours=1)
MINUTE = timedelta(minutes=1)
NEW_YEAR = once(datetime(2030, 1, 1, tzinfo=UTC))

Call = Callable[[Headway, dict[str, Any]], Chain]

TIMED: dict[str, Call] = {
    "schedule": lambda hw, options: hw.schedule("work", "self", None, HOURLY, **options),
    "schedule_many": lambda hw, options: hw.schedule_many(
        "work", "many", [Item("0"), Item("1")], HOURLY, **options
    ),
    "schedule_many item": lambda hw, options: hw.schedule_many(
        "work", "many", [Item("0", **options)], HOURLY
    ),
}
ONCE: dict[str, Call] = {
    "schedule_once": lambda hw, options: hw.schedule_once("work", "self", None, NEW_YEAR, **options)
}
DEPENDENT: dict[str, Call] = {
    "include": lambda hw, options: root(hw).include("work", "self", None, **options),
    "then_include": lambda hw, options: root(hw).then_include("work", "self", None, **options),
    "include_many": lambda hw, options: root(hw).include_many("work", "many", [Item(0)], **options),
    "then_include_many": lambda hw, options: root(hw).then_include_many(
        "work", "many", [Item(0, depends_on="root")], **options
    ),
    "include_many item": lambda hw, options: root(hw).include_many(
        "work", "many", [Item(0, **options)]
    ),
}
EVERY_CALL = TIMED | ONCE | DEPENDENT


@pytest.fixture
def hw() -> Headway:
    hw = Headway("warehouse")
    hw.workflow("work")(lambda: None)
    return hw


def root(hw: Headway) -> Chain:
    return hw.schedule("work", "root", None, HOURLY)


def last(hw: Headway) -> Manifest:
    return hw.declaration().manifests[-1]


def refusal(hw: Headway, call: Call, options: dict[str, Any]) -> str:
    with pytest.raises(DefinitionError) as refused:
        call(hw, options)
    message = str(refused.value)
    assert "\n" not in message and len(message) < 400
    assert {one.external_id for one in hw.declaration().manifests} <= {"root"}
    return message


# What is taken over


@pytest.mark.parametrize("call", EVERY_CALL)
def test_options_every_call_takes(hw: Headway, call: str) -> None:
    retry = RetryPolicy(MINUTE, 1.0, MINUTE)
    common: dict[str, Any] = {"priority": 7, "max_retries": 1, "timeout": MINUTE, "retry": retry}
    EVERY_CALL[call](hw, common | {"group": "mine", "enabled": False, "allow_overlap": True})
    made = last(hw)
    assert made.allow_overlap
    assert (made.priority, made.max_retries, made.timeout) == (7, 1, MINUTE)
    assert (made.retry, made.group.name, made.enabled) == (retry, "mine", False)


@pytest.mark.parametrize("call", TIMED)
def test_options_about_time(hw: Headway, call: str) -> None:
    weekends = exclude.weekends()
    TIMED[call](
        hw,
        {
            "misfire": "catch_up",
            "misfire_threshold": MINUTE,
            "catch_up_limit": 7,
            "variance": MINUTE,
            "exclude": [weekends],
            "first_run": "at_first_occurrence",
            "tz": "Europe/Berlin",
        },
    )
    assert last(hw).time == TimeOptions(
        MisfirePolicy.CATCH_UP,
        MINUTE,
        7,
        MINUTE,
        (weekends,),
        FirstRun.AT_FIRST_OCCURRENCE,
        "Europe/Berlin",
    )


@pytest.mark.parametrize("call", DEPENDENT)
def test_options_about_parents(hw: Headway, call: str) -> None:
    DEPENDENT[call](hw, {"join": "any", "dormant": True, "when_busy": "keep"})
    made = last(hw)
    assert (made.join, made.kind, made.when_busy) == ("any", "dormant_dependent", WhenBusy.KEEP)


def test_options_of_an_item_win_over_those_of_its_batch(hw: Headway) -> None:
    given = [Item("a"), Item("b", priority=9, group="own", misfire="do_nothing")]
    hw.schedule_many("work", "load", given, HOURLY, priority=3, max_retries=1, misfire="catch_up")
    first, second = hw.declaration().manifests
    assert [(one.priority, one.max_retries) for one in (first, second)] == [(3, 1), (9, 1)]
    assert (first.group.name, second.group.name) == ("load", "own")
    assert first.time.misfire_policy is MisfirePolicy.CATCH_UP
    assert second.time.misfire_policy is MisfirePolicy.DO_NOTHING


@pytest.mark.parametrize("order", [("own", "plain"), ("plain", "own", "other")])
def test_options_of_an_item_are_those_of_no_other(hw: Headway, order: tuple[str, ...]) -> None:
    given = [Item(one, priority=9) if one == "own" else Item(one) for one in order]
    hw.schedule_many("work", "load", given, HOURLY, priority=3)
    made = {one.external_id: one.priority for one in hw.declaration().manifests}
    assert made == {f"load-{one}": 9 if one == "own" else 3 for one in order}


# Groups


def test_the_group_is_the_id_or_the_batchs_name_unless_one_is_named(hw: Headway) -> None:
    root(hw).then_include("work", "after", None)
    hw.schedule_many("work", "load", [Item("users")], HOURLY)
    hw.schedule_many("work", "store", [Item("users")], HOURLY, group="etl")
    made = {one.external_id: (one.group.name, one.batch) for one in hw.declaration().manifests}
    assert made == {
        "root": ("root", None),
        "after": ("after", None),
        "load-users": ("load", "load"),
        "store-users": ("etl", "store"),
    }
    assert hw.declaration().groups == {}, "named, not declared"


@pytest.mark.parametrize(
    ("call", "derived"),
    [
        ("schedule", "self"),
        ("schedule_many", "many"),
        ("then_include", "self"),
        ("include_many", "many"),
    ],
)
def test_a_group_without_a_name_configures_the_derived_one(
    hw: Headway, call: str, derived: str
) -> None:
    EVERY_CALL[call](hw, {"group": Group(max_active_jobs=4)})
    assert last(hw).group == Group(derived, max_active_jobs=4)
    assert hw.declaration().groups == {derived: Group(derived, max_active_jobs=4)}


def test_one_batch_with_two_meanings_of_its_group_is_refused(hw: Headway) -> None:
    given = [Item("a"), Item("b", group=Group(max_active_jobs=5))]
    with pytest.raises(DefinitionError, match="group 'load' is declared twice") as refused:
        hw.schedule_many("work", "load", given, HOURLY, group=Group(max_active_jobs=4))
    assert "load-b: " in str(refused.value)
    assert hw.declaration().groups == {}


# What is refused


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("priorty", "priority"),
        ("max_retry", "max_retries"),
        ("timout", "timeout"),
        ("groups", "group"),
    ],
)
@pytest.mark.parametrize("call", EVERY_CALL)
def test_an_option_that_does_not_exist_is_refused_with_the_nearest(
    hw: Headway, call: str, wrong: str, right: str
) -> None:
    message = refusal(hw, EVERY_CALL[call], {wrong: 1})
    assert f"no option is called '{wrong}'; did you mean '{right}'?" in message


def test_an_option_like_no_other_is_refused_with_all_there_are(hw: Headway) -> None:
    message = refusal(hw, TIMED["schedule"], {"qqq": 1})
    assert "self: no option is called 'qqq'; there are allow_overlap, catch_up_limit" in message


@pytest.mark.parametrize("option", ["misfire", "variance", "exclude", "first_run", "tz"])
@pytest.mark.parametrize("call", DEPENDENT)
def test_time_is_not_for_dependents(hw: Headway, call: str, option: str) -> None:
    message = refusal(hw, DEPENDENT[call], {option: None})
    assert f"option '{option}' is about time, and a dependent has none; leave it out" in message


@pytest.mark.parametrize("option", ["dormant", "join", "when_busy"])
@pytest.mark.parametrize("call", TIMED | ONCE)
def test_parents_are_for_dependents_alone(hw: Headway, call: str, option: str) -> None:
    message = refusal(hw, EVERY_CALL[call], {option: True})
    assert f"option '{option}' is for dependents; declare it with include" in message


REFUSED: list[tuple[Call, dict[str, Any], str]] = [
    (DEPENDENT["include"], {"when_busy": "keep"}, "when_busy is about activations"),
    (DEPENDENT["include"], {"when_busy": "keep", "dormant": False}, "needs dormant=True"),
    (DEPENDENT["include"], {"allow_overlap": 1}, "allow_overlap = 1: must be True or False"),
    (
        DEPENDENT["include"],
        {"allow_overlap": True, "dormant": True},
        "allow_overlap = True: must be left out with dormant=True",
    ),
    (DEPENDENT["include"], {"dormant": True, "when_busy": "wait"}, "'skip', 'keep', 'replace'"),
    (DEPENDENT["include"], {"dormant": "yes"}, "dormant = 'yes': must be True or False"),
    (DEPENDENT["include"], {"join": "some"}, "join = 'some': must be one of 'all', 'any'"),
    (TIMED["schedule"], {"enabled": 1}, "enabled = 1: must be True or False"),
    (TIMED["schedule"], {"retry": 3}, "retry = 3: must be a RetryPolicy"),
    (TIMED["schedule"], {"misfire": "skip"}, "misfire = 'skip': must be one of"),
    (TIMED["schedule"], {"first_run": "now"}, "first_run = 'now': must be one of"),
    (TIMED["schedule"], {"variance": timedelta(seconds=-1)}, "variance"),
    (TIMED["schedule"], {"variance": timedelta(milliseconds=1)}, "whole seconds"),
    (TIMED["schedule"], {"variance": timedelta(days=400)}, "366 days"),
    (TIMED["schedule"], {"misfire_threshold": 60}, "must be a timedelta"),
    (TIMED["schedule"], {"catch_up_limit": 0}, "1 to 10000"),
    (TIMED["schedule"], {"tz": "Mars/Olympus"}, "Mars/Olympus"),
    (TIMED["schedule"], {"exclude": "weekends"}, "exclude"),
    (ONCE["schedule_once"], {"variance": MINUTE}, "this one runs once"),
    (
        lambda hw, options: hw.schedule("work", "self", None, cron("0 9 * * *"), **options),
        {"tz": "Europe/Berlin"},
        "write it once: cron('0 9 * * *', tz='Europe/Berlin')",
    ),
    (
        lambda hw, options: hw.schedule("work", "self", **options),
        {"variance": MINUTE},
        "this one runs only when triggered",
    ),
    (
        lambda hw, options: hw.schedule("work", "self", None, cron("0 9 * * SAT"), **options),
        {"exclude": [exclude.weekends()]},
        "would never run",
    ),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_a_contradiction_or_a_bad_value_is_refused(hw: Headway, number: int) -> None:
    call, options, told = REFUSED[number]
    message = refusal(hw, call, options)
    assert message.startswith("self: ") and told in message, message


def test_a_zone_said_twice_alike_is_fine(hw: Headway) -> None:
    hw.schedule("work", "self", None, cron("0 9 * * *", "Asia/Tokyo"), tz="Asia/Tokyo")
    assert last(hw).time.tz == "Asia/Tokyo"


def test_the_options_of_a_batch_may_come_from_a_generator(hw: Headway) -> None:
    excluded = (one for one in [exclude.weekends()])
    hw.schedule_many("work", "load", [Item(0), Item(1)], HOURLY, exclude=excluded)
    assert [len(one.time.exclusions) for one in hw.declaration().manifests] == [1, 1]
