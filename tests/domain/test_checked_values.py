"""Values given by hand: the ends of what is taken, and what is said of everything else."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from headway.domain.actions import detail_of
from headway.domain.due import MisfirePolicy
from headway.domain.exclusions import exclude
from headway.domain.idempotency import checked_key, request_digest
from headway.domain.isolation import SMALLEST, Isolation, asked_for
from headway.domain.manifest import Group, Manifest, Terms, WhenBusy, checked_priority
from headway.domain.names import checked_id, checked_words, may_be_stored
from headway.domain.retry import RetryPolicy
from headway.domain.schedule import Never, every
from headway.domain.spans import DAY, HOUR, MINUTE, floored
from headway.domain.time_options import TimeOptions
from headway.domain.timing import FirstRun, Timing
from headway.domain.versions import next_moment, version_of
from headway.domain.virtual_clock import MONDAY, VirtualClock, aware
from headway.domain.work_queue import (
    LONGEST_DELAY,
    NewEntry,
    Source,
    checked_delay,
    entry_priority,
)
from headway.errors import DefinitionError
from tests.domain.rows import NOON, an_entry, an_execution

ANY: Any = Terms
TERMS = Terms("work", "None", every(hours=1), Group("etl"))


def refusal(check: Callable[[], object]) -> str:
    with pytest.raises(DefinitionError) as refused:
        check()
    message = str(refused.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("value", [0, 31])
def test_a_priority_is_taken(value: int) -> None:
    assert checked_priority("load", value) == value
    assert Group("etl", priority=value).priority == value


@pytest.mark.parametrize("value", [-1, 32, True, 2.0, "3", None])
def test_what_is_no_priority_is_refused(value: Any) -> None:
    rule = f"priority = {value!r}: must be a whole number from 0 to 31; for example 10"
    assert refusal(lambda: checked_priority("load", value)) == f"load: {rule}"
    assert refusal(lambda: Group("etl", priority=value)) == f"group 'etl': {rule}"
    assert refusal(lambda: Group(priority=value)) == f"group: {rule}"
    assert refusal(lambda: ANY(**fields(priority=value)).checked("load")) == f"load: {rule}"


def fields(**changes: Any) -> dict[str, Any]:
    known = {"workflow": "work", "input_type": "None", "schedule": Never(), "group": Group("etl")}
    return known | changes


@pytest.mark.parametrize("value", [0, -1, True, 2.0, "3"])
def test_what_is_no_cap_of_a_group_is_refused(value: Any) -> None:
    rule = "must be a whole number of at least 1, or None for no cap; for example 4"
    message = refusal(lambda: Group("etl", max_active_jobs=value))
    assert message == f"group 'etl': max_active_jobs = {value!r}: {rule}"
    assert Group("etl", max_active_jobs=1).max_active_jobs == 1


def test_the_name_of_a_group_is_a_name() -> None:
    assert Group("cafe\u0301").name == "caf\u00e9"
    assert Group().name == ""
    assert refusal(lambda: Group(" a")).startswith("group = ' a': must not start or end")


@pytest.mark.parametrize(
    "changes",
    [
        {"max_retries": 0},
        {"max_retries": 1000},
        {"timeout": timedelta(seconds=1)},
        {"timeout": timedelta(days=366)},
        {},
    ],
)
def test_terms_in_range_are_taken(changes: dict[str, Any]) -> None:
    terms = Terms(**fields(**changes))
    assert terms.checked("load") is terms


@pytest.mark.parametrize("value", [-1, 1001, True, 2.0, "3"])
def test_what_is_no_number_of_retries_is_refused(value: Any) -> None:
    rule = "must be a whole number from 0 to 1000; for example 3"
    message = refusal(lambda: Terms(**fields(max_retries=value)).checked("load"))
    assert message == f"load: max_retries = {value!r}: {rule}"


@pytest.mark.parametrize(
    "value", [timedelta(seconds=0.9), timedelta(days=366, seconds=1), 60, "1m"]
)
def test_what_is_no_timeout_is_refused(value: Any) -> None:
    rule = "must be a timedelta from 1 second to 366 days; for example timedelta(minutes=20)"
    message = refusal(lambda: Terms(**fields(timeout=value)).checked("load"))
    assert message == f"load: timeout = {value!r}: {rule}"


def test_how_a_manifest_comes_to_run_is_its_kind() -> None:
    dormant = Terms(**fields(dormant=True))
    assert Manifest("load", "null", TERMS).kind == "interval"
    assert Manifest("load", "null", TERMS, ("extract",)).kind == "dependent"
    assert Manifest("load", "null", dormant, ("extract",)).kind == "dormant_dependent"
    assert Manifest("load", "null", dormant).kind == "none"


def test_items_of_one_batch_share_their_terms() -> None:
    one, child = Manifest("a", "1", TERMS), Manifest("b", "2", TERMS, ("a",))
    equal = Terms("work", "None", every(hours=1), Group("etl"))
    assert one.is_like(Manifest("b", "2", TERMS))
    assert child.is_like(Manifest("c", "3", TERMS, ("a", "b")))
    assert not one.is_like(child)
    assert not one.is_like(Manifest("a", "1", equal))


@pytest.mark.parametrize("delay", [None, timedelta(0), LONGEST_DELAY])
def test_a_delay_is_taken(delay: timedelta | None) -> None:
    assert checked_delay("load", delay) == delay


@pytest.mark.parametrize("delay", [timedelta(seconds=-1), LONGEST_DELAY * 1.1, 60, "1m"])
def test_what_is_no_delay_is_refused(delay: Any) -> None:
    rule = "must be a timedelta from 0 to 10 years; for example timedelta(minutes=30)"
    assert refusal(lambda: checked_delay("load", delay)) == f"load: delay = {delay!r}: {rule}"


def test_a_boost_ends_at_the_highest_priority() -> None:
    assert [entry_priority(15, boost) for boost in (0, 16, 17)] == [15, 31, 31]
    assert entry_priority(7) == 7


@pytest.mark.parametrize("value", [1, 2**63 - 1])
def test_an_id_is_taken(value: int) -> None:
    assert checked_id("entry", value) == value


@pytest.mark.parametrize("value", [0, -1, 2**63, True, 7.0, "7", None])
def test_what_is_no_id_is_refused(value: Any) -> None:
    rule = "must be its id, a positive number; for example 7"
    assert refusal(lambda: checked_id("entry", value)) == f"entry = {value!r}: {rule}"


def test_words_are_kept_as_they_are_if_they_can_be_stored() -> None:
    assert checked_words("reason", "wrong\nday \x07", "too late") == "wrong\nday \x07"
    message = refusal(lambda: checked_words("reason", "a\ud800", "too late"))
    rule = "must not contain lone surrogates (U+D800 at position 2); for example 'too late'"
    assert message == rf"reason = 'a\ud800': {rule}"
    assert [may_be_stored(one) for one in (7, None, "ä\n", "a\x00")] == [False, False, True, False]


@pytest.mark.parametrize("key", ["!", "~" * 255])
def test_an_idempotency_key_is_taken(key: str) -> None:
    assert checked_key(key) == key


@pytest.mark.parametrize("key", ["", "x" * 256, "a b", "a\n", "ä", "\x7f", None, 5])
def test_what_is_no_idempotency_key_is_refused(key: object) -> None:
    rule = "must have 1 to 255 printable ASCII characters without spaces; for example a UUID"
    message = refusal(lambda: checked_key(key))
    assert message.startswith("idempotency key = ") and message.endswith(f": {rule}")


def test_one_request_is_told_from_another() -> None:
    requests = [
        ("POST", "/a", b"bc"),
        ("POST", "/ab", b"c"),
        ("POST/", "a", b"bc"),
        ("PUT", "/a", b"bc"),
        ("POST", "/a", b"bd"),
        ("POST", "/\ud800", b"bc"),
    ]
    assert len({request_digest(*one) for one in requests}) == len(requests)
    assert request_digest(*requests[0]) == request_digest(*requests[0])


@pytest.mark.parametrize(
    ("size", "most"),
    [
        (None, None),
        (SMALLEST, SMALLEST),
        ("64MiB", SMALLEST),
        ("512MB", 512_000_000),
        (64.0 * 1024 * 1024, SMALLEST),
    ],
)
def test_a_process_of_its_own_may_have_so_much_memory(size: Any, most: int | None) -> None:
    assert asked_for(True, size) == Isolation(most)


@pytest.mark.parametrize("size", [SMALLEST - 1, True, "much", -1, [], "63MiB"])
def test_what_is_no_size_of_memory_is_refused(size: Any) -> None:
    rule = "must be a number of bytes, or text with a unit, of at least 64MiB; for example '512MB'"
    assert refusal(lambda: asked_for(True, size)) == f"max_memory = {size!r}: {rule}"


def test_only_a_process_of_its_own_has_a_limit() -> None:
    assert asked_for(False, None) is None
    rule = "needs a process of its own; write isolated=True beside it"
    assert refusal(lambda: asked_for(False, "1GB")) == f"max_memory = '1GB': {rule}"
    rule = "must be True or False; for example isolated=True"
    assert refusal(lambda: asked_for("yes", None)) == f"isolated = 'yes': {rule}"
    assert refusal(lambda: asked_for(1, None)) == f"isolated = 1: {rule}"


# --- moments


def test_a_virtual_clock_moves_when_it_is_told_to_and_never_back() -> None:
    tokyo = ZoneInfo("Asia/Tokyo")
    clock = VirtualClock(NOON.astimezone(tokyo))
    assert clock() == clock.now == NOON
    assert clock.now.tzinfo is UTC
    clock.move_to(NOON)
    clock.move_to((NOON + HOUR).astimezone(tokyo))
    assert clock() == clock.now == NOON + HOUR
    assert clock.now.tzinfo is UTC
    message = refusal(lambda: clock.move_to(NOON))
    shows = "the clock shows 2030-01-07 13:00:00+00:00"
    assert message == f"{shows} and cannot go back to 2030-01-07 12:00:00+00:00"
    assert clock.now == NOON + HOUR
    assert VirtualClock().now == MONDAY


def test_only_a_moment_with_a_zone_is_one() -> None:
    bad: Any = "noon"
    assert refusal(lambda: aware(bad)) == "'noon' is not a moment; write datetime(..., tzinfo=UTC)"
    naive = datetime(2026, 1, 5)
    rule = "datetime.datetime(2026, 1, 5, 0, 0) has no time zone; write datetime(..., tzinfo=UTC)"
    assert refusal(lambda: aware(naive)) == rule


def test_a_changed_row_has_another_version() -> None:
    tick = timedelta(microseconds=1)
    assert version_of(NOON) != version_of(NOON + tick)
    assert version_of(datetime(1970, 1, 1, 0, 0, 0, 255, tzinfo=UTC)) == "ff"
    assert next_moment(NOON, NOON + HOUR) == NOON + HOUR
    assert next_moment(NOON, NOON - HOUR) == NOON + tick


def test_what_the_audit_tells_about_an_action() -> None:
    facts = {
        "flag": False,
        "count": 0,
        "share": 0.5,
        "delay": timedelta(minutes=5),
        "note": "a\x07" + "x" * 300,
        "left": None,
        "many": list(range(59)),
        "some": ("a", None, True),
        "inner": {1: None, "b": timedelta(seconds=1)},
    }
    told = detail_of(facts)
    assert told is not None
    [note] = [part for part in told.split('"') if "characters cut" in part]
    assert note.startswith(r"a\\x07") and 190 < len(note) <= 201
    assert told.replace(note, "…") == (
        '{"flag": false, "count": 0, "share": 0.5, "delay": 300.0, "note": "…", "many": '
        f'{list(range(50))}, "some": ["a", "None", true], "inner": {{"1": null, "b": 1.0}}}}'
    )
    assert detail_of({}) is None


# --- what is not said


def test_what_a_manifest_does_not_say_has_its_default() -> None:
    assert Group("etl") == Group("etl", max_active_jobs=None, priority=0, enabled=True)
    assert Terms("work", "None", Never(), Group("etl")) == Terms(
        workflow="work",
        input_type="None",
        schedule=Never(),
        group=Group("etl"),
        priority=0,
        max_retries=None,
        timeout=None,
        enabled=True,
        retry=None,
        time=TimeOptions(),
        join="all",
        dormant=False,
        when_busy=WhenBusy.SKIP,
        batch=None,
        allow_overlap=False,
    )
    assert RetryPolicy() == RetryPolicy(timedelta(minutes=5), 2.0, timedelta(hours=1), 0.0)


def test_what_is_not_said_about_time_is_the_deployments_default() -> None:
    hourly, minute = every(hours=1), timedelta(minutes=1)
    plain = Timing(
        hourly,
        misfire_policy=MisfirePolicy.FIRE_ONCE_NOW,
        misfire_threshold=timedelta(seconds=60),
        catch_up_limit=100,
        variance=timedelta(0),
        exclusions=(),
        first_run=FirstRun.AT_ONCE,
        tz=None,
    )
    assert Timing(hourly) == TimeOptions().timing(hourly) == plain
    defaults = MisfirePolicy.DO_NOTHING, 2 * minute
    assert TimeOptions().timing(hourly, *defaults) == Timing(hourly, *defaults)
    own = TimeOptions(
        misfire_policy=MisfirePolicy.CATCH_UP,
        misfire_threshold=timedelta(0),
        catch_up_limit=5,
        variance=minute,
        exclusions=(exclude.weekends(),),
        first_run=FirstRun.AT_FIRST_OCCURRENCE,
        tz="Asia/Tokyo",
    )
    assert own.timing(hourly, *defaults) == Timing(hourly, **vars(own))


def test_what_an_entry_does_not_say() -> None:
    assert NewEntry("load", Source.AD_HOC, "null") == NewEntry(
        workflow="load",
        source=Source.AD_HOC,
        input="null",
        input_type="",
        priority=0,
        manifest_id=None,
        group_id=None,
        scheduled_at=None,
        scheduled_for=None,
        attempts=0,
        max_attempts=1,
        parents_seen=None,
    )
    assert an_entry()[11:] == (None, None, 0, None, False, "local", None)
    execution = an_execution()
    assert (execution.task_server, execution.max_attempts, execution.queued_at) == (
        "local",
        1,
        None,
    )


def test_a_span_of_time_begins_where_the_last_one_ended() -> None:
    tick = timedelta(microseconds=1)
    moment = NOON + timedelta(minutes=34, seconds=56)
    assert floored(moment, MINUTE) == NOON + timedelta(minutes=34)
    assert floored(moment, HOUR) == NOON
    assert floored(moment, DAY) == NOON - 12 * HOUR
    assert (floored(NOON, HOUR), floored(NOON - tick, HOUR)) == (NOON, NOON - HOUR)
