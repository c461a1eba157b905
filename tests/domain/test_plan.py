"""The plan: three values meet, and people read the difference field by field."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headway.domain.declaration import Declaration, declared_group, declared_manifest
from headway.domain.due import MisfirePolicy
from headway.domain.exclusions import exclude
from headway.domain.field_changes import (
    VALUE_LIMIT,
    FieldChange,
    differences,
    in_words,
    shortened,
)
from headway.domain.manifest import Group, Manifest, Terms, WhenBusy
from headway.domain.plan import (
    Change,
    GroupChange,
    Kept,
    Known,
    KnownGroup,
    KnownManifest,
    Plan,
    Stranded,
    compare,
)
from headway.domain.retry import RetryPolicy
from headway.domain.schedule import Never, cron, every, once
from headway.domain.time_options import TimeOptions
from headway.domain.timing import FirstRun
from headway.errors import OwnedByAnother

LATER = datetime(2031, 1, 1, tzinfo=UTC)


def a_manifest(external_id: str = "extract", **changes: Any) -> Manifest:
    terms: dict[str, Any] = {
        "workflow": "work",
        "input_type": "None",
        "schedule": every(hours=1),
        "group": Group("etl"),
    } | changes
    input, parents = terms.pop("input", "null"), terms.pop("parents", ())
    return Manifest(external_id, input, Terms(**terms), parents)


def wanted(*items: Manifest, groups: tuple[Group, ...] = ()) -> Declaration:
    return Declaration("warehouse", {group.name: group for group in groups}, items)


def known(*items: Manifest, **changes: Any) -> Known:
    """What the database has after these were applied, with *changes* to every row."""
    rows = {
        item.external_id: replace(
            KnownManifest(declared_manifest(item), "warehouse", item.enabled, item.parents),
            **changes,
        )
        for item in items
    }
    return Known(rows)


def changes_of(before: Manifest, after: Manifest) -> dict[str, tuple[str | None, str | None]]:
    [change] = compare(wanted(after), known(before)).changed
    return {field.name: (field.before, field.after) for field in change.fields}


def test_what_is_as_declared_is_no_change() -> None:
    plan = compare(
        wanted(a_manifest(), a_manifest("load")), known(a_manifest(), a_manifest("load"))
    )
    assert plan == Plan("warehouse", unchanged=2)
    assert not plan.has_changes


def test_what_is_new_is_told_with_when_it_runs() -> None:
    load = a_manifest("load", schedule=Never(), parents=("extract",), enabled=False)
    plan = compare(wanted(a_manifest(), load), Known())
    assert [one.external_id for one in plan.created] == ["extract", "load"]
    told = {field.name: field.after for field in plan.created[0].fields}
    assert told == {"runs": "every 1 hour", "group": "etl"}
    told = {field.name: field.after for field in plan.created[1].fields}
    assert told == {"runs": "after extract", "group": "etl", "enabled": "no"}
    assert plan.has_changes


@pytest.mark.parametrize(
    ("change", "name", "before", "after"),
    [
        ({"schedule": every(minutes=5)}, "runs", "every 1 hour", "every 5 minutes"),
        ({"schedule": once(LATER)}, "runs", "every 1 hour", "once at 2031-01-01 00:00:00 UTC"),
        (
            {"schedule": cron("0 9 * * 1", "Europe/Berlin")},
            "runs",
            "every 1 hour",
            "0 9 * * 1 = At 09:00 on Monday (Europe/Berlin)",
        ),
        ({"schedule": Never()}, "runs", "every 1 hour", "only when triggered"),
        ({"priority": 7}, "priority", "0", "7"),
        ({"max_retries": 5}, "max retries", "default", "5"),
        ({"timeout": timedelta(minutes=2)}, "timeout", "default", "0:02:00"),
        ({"group": Group("loads")}, "group", "etl", "loads"),
        ({"workflow": "play"}, "workflow", "work", "play"),
        ({"batch": "load"}, "batch", "none", "load"),
        ({"enabled": False}, "enabled", "yes", "no"),
        ({"allow_overlap": True}, "overlap allowed", "no", "yes"),
        ({"input": "[1]"}, "input", "null", "[1]"),
        (
            {"time": TimeOptions(variance=timedelta(seconds=30))},
            "variance",
            "default",
            "0:00:30",
        ),
        ({"time": TimeOptions(tz="Asia/Tokyo")}, "time zone", "default", "Asia/Tokyo"),
        (
            {"time": TimeOptions(exclusions=(exclude.weekends(),))},
            "exclusions",
            "none",
            "on sun, sat (skip)",
        ),
    ],
)
def test_a_change_is_told_by_its_field(
    change: dict[str, Any], name: str, before: str, after: str
) -> None:
    assert changes_of(a_manifest(), a_manifest(**change)) == {name: (before, after)}


def test_a_retry_policy_is_readable() -> None:
    told = changes_of(a_manifest(), a_manifest(retry=RetryPolicy(timedelta(seconds=5))))
    assert told["retry"][0] == "default"
    assert told["retry"][1] == "delay=0:00:05, multiplier=2.0, max_delay=1:00:00"
    told = changes_of(a_manifest(), a_manifest(retry=RetryPolicy(timedelta(0))))
    assert str(told["retry"][1]).startswith("delay=0:00:00, ")


def test_an_input_that_is_an_object_is_told_field_by_field() -> None:
    before = a_manifest(input='{"table":"users","rows":100,"old":1}')
    after = a_manifest(input='{"table":"users","rows":200,"new":"ü"}')
    assert changes_of(before, after) == {
        "input.rows": ("100", "200"),
        "input.old": ("1", "absent"),
        "input.new": ("absent", '"ü"'),
    }


def test_a_long_value_is_cut_to_where_it_differs() -> None:
    before, after = ("x" * 40_000 + end + "y" * 40_000 for end in ("1", "2"))
    short = shortened(before, after)
    assert short[0] != short[1]
    assert max(map(len, short)) <= VALUE_LIMIT
    assert shortened("same" * 100, "same" * 100)[0] == shortened("same" * 100, "")[0]
    assert shortened("x" * 100, "x" * 101)[0] != shortened("x" * 100, "x" * 101)[1]


def test_control_characters_never_reach_the_terminal() -> None:
    [change] = differences({"workflow": "a"}, {"workflow": "b\x1b[31m\nc"})
    assert change.after == r"b\x1b[31m c"


def test_parents_are_compared_with_the_edges_there_are() -> None:
    load = a_manifest("load", schedule=Never(), parents=("extract", "transform"))
    rows = known(load, parents=("extract", None))
    [change] = compare(wanted(load), rows).changed
    assert change.fields == (FieldChange("after", "(removed), extract", "extract, transform"),)


def test_a_schedule_that_becomes_a_dependency() -> None:
    load = a_manifest("load", schedule=Never(), parents=("extract",), join="any")
    told = changes_of(a_manifest("load"), load)
    assert told["runs"] == ("every 1 hour", "after any of its parents")
    assert told["after"] == ("nothing", "extract")


def test_half_is_removed_and_more_than_half_is_kept_back() -> None:
    four = [a_manifest(name) for name in ("a", "b", "c", "d")]
    plan = compare(wanted(*four[:2]), known(*four))
    assert (plan.removed, plan.kept_back) == ((Change("c"), Change("d")), ())
    plan = compare(wanted(*four[:1], a_manifest("new")), known(*four))
    assert plan.removed == ()
    assert [one.external_id for one in plan.kept_back] == ["b", "c", "d"]
    assert plan.has_changes


def test_what_others_own_is_not_removed_and_not_taken() -> None:
    theirs = known(a_manifest("invoice"), owner="billing")
    assert compare(wanted(), theirs) == Plan("warehouse")
    with pytest.raises(OwnedByAnother, match="belongs to the application 'billing'"):
        compare(wanted(a_manifest("invoice", priority=3)), theirs)
    with pytest.raises(OwnedByAnother, match="belongs to the application 'billing'"):
        compare(wanted(a_manifest("invoice")), theirs)


def test_what_was_made_at_run_time_is_changed_by_the_code_but_never_removed() -> None:
    rows = known(a_manifest(), owner="warehouse:runtime")
    assert compare(wanted(), rows) == Plan("warehouse")
    assert len(compare(wanted(a_manifest(priority=3)), rows).changed) == 1


def test_an_operators_switch_is_kept_while_the_codes_stays() -> None:
    plan = compare(wanted(a_manifest(priority=3)), known(a_manifest(), enabled=False))
    assert plan.kept == (Kept("extract", "enabled", "no", "yes"),)
    assert [field.name for field in plan.changed[0].fields] == ["priority"]
    plan = compare(wanted(a_manifest()), known(a_manifest(), enabled=False))
    assert (plan.has_changes, len(plan.kept)) == (False, 1)


def test_an_operators_switch_that_is_lost_is_told() -> None:
    before = known(a_manifest(enabled=False), enabled=True)
    [change] = compare(wanted(a_manifest(enabled=True)), before).changed
    assert change.fields == (FieldChange("enabled", "no", "yes"),)


def test_one_that_ran_once_switched_itself_off() -> None:
    single = a_manifest(schedule=once(LATER))
    assert compare(wanted(single), known(single, enabled=False, succeeded=True)).kept == ()
    assert len(compare(wanted(single), known(single, enabled=False)).kept) == 1
    again = a_manifest(schedule=once(LATER + timedelta(days=1)))
    assert compare(wanted(again), known(single, enabled=False)).kept == ()


def group_plan(before: Group | None, after: Group, **row: Any) -> Plan:
    text = declared_group(before) if before else None
    values = vars(before or Group("etl")) | row
    del values["name"]
    return compare(wanted(groups=(after,)), Known({}, {"etl": KnownGroup(text, **values)}))


def test_a_new_group_is_told_with_its_values() -> None:
    [change] = compare(wanted(groups=(Group("etl", 4),)), Known()).groups
    assert (change.new, change.fields[0]) == (True, FieldChange("max active jobs", None, "4"))


def test_a_group_keeps_what_an_operator_set_and_loses_what_the_code_moved() -> None:
    plan = group_plan(
        Group("etl", 4, 10), Group("etl", 8, 10), max_active_jobs=1, priority=31, enabled=False
    )
    cap = FieldChange("max active jobs", "4", "8", operators="1")
    assert plan.groups == (GroupChange("etl", (cap,)),)
    assert plan.kept == (
        Kept("group etl", "priority", "31", "10"),
        Kept("group etl", "enabled", "no", "yes"),
    )


def test_a_group_that_was_only_named_is_taken_from_what_it_has() -> None:
    plan = group_plan(None, Group("etl", 4), priority=7)
    assert plan.groups[0].fields == (
        FieldChange("max active jobs", "no cap", "4"),
        FieldChange("priority", "7", "0"),
    )
    assert plan.kept == ()


def test_a_group_without_changes() -> None:
    assert not group_plan(Group("etl", 4), Group("etl", 4)).has_changes


def test_work_is_counted_where_it_matters() -> None:
    plan = Plan("warehouse", (Change("new"),), (Change("extract"),), (), 0, (Change("load"),))
    assert plan.concerned() == {"extract", "load"}
    counted = plan.with_work({"extract": 2}, {"load": 1})
    assert counted.changed == (Change("extract", queued=2),)
    assert counted.kept_back == (Change("load", running=1),)


def test_a_row_nobody_declared_is_told_in_full() -> None:
    rows = Known({"extract": KnownManifest(None, "warehouse")})
    [change] = compare(wanted(a_manifest()), rows).changed
    assert FieldChange("runs", "unknown", "every 1 hour") in change.fields


def test_what_is_new_is_told_with_its_exclusions_and_its_zone() -> None:
    time = TimeOptions(exclusions=(exclude.weekends(then="defer"),), tz="Asia/Tokyo")
    alone = a_manifest("extract", time=time, group=Group("extract"), priority=7)
    [change] = compare(wanted(alone), Known()).created
    assert change == Change(
        "extract",
        (
            FieldChange("runs", None, "every 1 hour"),
            FieldChange("exclusions", None, "on sun, sat (defer)"),
            FieldChange("time zone", None, "Asia/Tokyo"),
        ),
    )


@pytest.mark.parametrize(
    ("change", "name", "before", "after"),
    [
        ({"input_type": "int"}, "input type", "None", "int"),
        ({"time": TimeOptions(catch_up_limit=5)}, "catch-up limit", "default", "5"),
        (
            {"time": TimeOptions(misfire_policy=MisfirePolicy.DO_NOTHING)},
            "misfire",
            "default",
            "do_nothing",
        ),
        (
            {"time": TimeOptions(misfire_threshold=timedelta(minutes=2))},
            "misfire threshold",
            "default",
            "0:02:00",
        ),
        (
            {"time": TimeOptions(first_run=FirstRun.AT_FIRST_OCCURRENCE)},
            "first run",
            "default",
            "at_first_occurrence",
        ),
        ({"when_busy": WhenBusy.KEEP}, "when busy", "skip", "keep"),
    ],
)
def test_every_field_is_told(change: dict[str, Any], name: str, before: str, after: str) -> None:
    assert changes_of(a_manifest(), a_manifest(**change)) == {name: (before, after)}


def test_what_reads_alike_is_a_change_without_fields() -> None:
    child = a_manifest("load", schedule=Never(), parents=("extract",))
    other = a_manifest("load", schedule=Never(), parents=("extract",), join="any", dormant=True)
    still = a_manifest("load", schedule=Never(), parents=("extract",), dormant=True)
    assert changes_of(child, other) == {
        "runs": ("after all of its parents", "when a parent activates it")
    }
    [change] = compare(wanted(still), known(other)).changed
    assert change == Change("load")


def test_a_declaration_of_an_earlier_version_is_told_as_well_as_it_can_be() -> None:
    told = in_words({})
    assert (told["runs"], told["input type"], told["input"]) == ("unknown", "none", "null")
    assert in_words({"schedule": {"schedule_kind": "once"}})["runs"] == "unknown"
    assert in_words({"schedule": {"more": 1}})["runs"] == "unknown"
    assert in_words({"schedule": {"schedule_kind": "once", "once_at": "?"}})["runs"] == "unknown"
    assert in_words({"kind": "dependent"})["runs"] == "after all of its parents"
    assert in_words({"time": {"exclusions": "of a later version"}})["exclusions"] == (
        "of a later version"
    )
    assert in_words({"input": "no json"})["input"] == "no json"
    assert in_words({"input": '["ü"]'})["input"] == '["ü"]'


def test_what_one_line_holds() -> None:
    assert shortened("a\tb\nc", "")[0] == "a b c"
    assert shortened("x" * VALUE_LIMIT, "")[0] == "x" * VALUE_LIMIT
    assert shortened("x" * (VALUE_LIMIT + 1), "")[0] == "x" * (VALUE_LIMIT - 4) + " ..."
    begin = "0123456789" * 9
    assert shortened(begin + "a", begin + "bc") == ("... 890123456789a", "... 890123456789bc")
    assert shortened(begin, begin + "b") == ("... 890123456789", "... 890123456789b")


def test_the_plan_has_everything_in_its_place() -> None:
    changed, gone = a_manifest("b", priority=3), a_manifest("c")
    plan = compare(
        wanted(a_manifest("a"), changed, a_manifest("new")),
        replace(known(a_manifest("a"), a_manifest("b"), gone), outdated=True),
    )
    new = FieldChange("runs", None, "every 1 hour"), FieldChange("group", None, "etl")
    assert plan == Plan(
        "warehouse",
        created=(Change("new", new),),
        changed=(Change("b", (FieldChange("priority", "0", "3"),)),),
        removed=(Change("c"),),
        unchanged=1,
        outdated=True,
    )
    assert plan.concerned() == {"b", "c"}


CHANGE = Change("load")


@pytest.mark.parametrize(
    ("plan", "changes"),
    [
        (Plan("x", created=(CHANGE,)), True),
        (Plan("x", changed=(CHANGE,)), True),
        (Plan("x", removed=(CHANGE,)), True),
        (Plan("x", kept_back=(CHANGE,)), True),
        (Plan("x", groups=(GroupChange("etl", ()),)), True),
        (
            Plan(
                "x",
                unchanged=3,
                kept=(Kept("load", "enabled", "no", "yes"),),
                outdated=True,
                stranded=(Stranded("load", "work", "why", 1, 7),),
            ),
            False,
        ),
    ],
)
def test_whether_anything_would_be_different(plan: Plan, changes: bool) -> None:
    assert plan.has_changes is changes


def test_work_of_what_is_removed_is_counted_too() -> None:
    plan = Plan("x", (Change("new"),), (Change("a"),), (Change("b"),), 0, (Change("c"),))
    assert plan.concerned() == {"a", "b", "c"}
    counted = plan.with_work({"b": 1, "new": 5}, {"a": 2, "b": 3, "c": 4})
    assert counted == replace(
        plan,
        changed=(Change("a", running=2),),
        removed=(Change("b", queued=1, running=3),),
        kept_back=(Change("c", running=4),),
    )


def test_what_goes_strands_nothing() -> None:
    found = [Stranded(name, "work", "why", 1, 7) for name in ("a", "b", "c")]
    plan = Plan("x", removed=(Change("a"),), kept_back=(Change("b"),))
    assert plan.with_stranded(found) == replace(plan, stranded=(found[2],))


def test_a_switch_that_an_operator_has_set_back_is_lost_and_told() -> None:
    row = replace(known(a_manifest()).manifests["extract"], declared=None, enabled=False)
    [change] = compare(wanted(a_manifest()), Known({"extract": row})).changed
    assert FieldChange("enabled", "no", "yes") in change.fields
    moved = known(a_manifest(), enabled=False)
    assert compare(wanted(a_manifest(enabled=False)), moved).kept == ()
    [change] = compare(wanted(a_manifest(enabled=False)), moved).changed
    assert change.fields == (FieldChange("enabled", "yes", "no"),)


def test_a_new_group_has_all_its_values_and_groups_are_sorted() -> None:
    groups = (Group("z", enabled=False), Group("a", 4, 7))
    changes = compare(wanted(groups=groups), Known()).groups
    assert changes == (
        GroupChange(
            "a",
            (
                FieldChange("max active jobs", None, "4"),
                FieldChange("priority", None, "7"),
                FieldChange("enabled", None, "yes"),
            ),
            new=True,
        ),
        GroupChange(
            "z",
            (
                FieldChange("max active jobs", None, "no cap"),
                FieldChange("priority", None, "0"),
                FieldChange("enabled", None, "no"),
            ),
            new=True,
        ),
    )


def test_an_operators_value_that_the_code_takes_over_is_not_lost() -> None:
    plan = group_plan(Group("etl", 4), Group("etl", 8), max_active_jobs=8)
    assert plan.groups[0].fields == (FieldChange("max active jobs", "4", "8"),)
    assert plan.kept == ()
