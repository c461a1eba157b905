"""What the code says about manifests, as text: canonical, and the same alone or with others."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.domain.declaration import (
    Declaration,
    check_owner,
    declared_manifest,
    declared_manifests,
)
from headway.domain.exclusion_kinds import Days
from headway.domain.manifest import Group, Manifest, Terms, WhenBusy
from headway.domain.retry import RetryPolicy
from headway.domain.schedule import Never, cron, every, once
from headway.domain.time_options import TimeOptions
from headway.errors import OwnedByAnother

# Few values each, so that neighbours often share some of them, and sometimes all.
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "external_id": st.sampled_from(['a"b', "extract\\u0000", "ключ", "load-1"]),
    "workflow": st.sampled_from(["work", "ünïcode"]),
    "input": st.sampled_from(["null", '{"a":"\\u0000"}', '"\\\\"']),
    "input_type": st.sampled_from(["str", "list[int]"]),
    "schedule": st.sampled_from(
        [every(hours=1), cron("0 9 * * *"), once(datetime(2030, 1, 1, tzinfo=UTC)), Never()]
    ),
    "group": st.sampled_from([Group("etl"), Group("etl", 4), Group("x")]),
    "priority": st.sampled_from([0, 3]),
    "timeout": st.sampled_from([None, timedelta(seconds=90)]),
    "enabled": st.booleans(),
    "retry": st.sampled_from([None, RetryPolicy()]),
    "time": st.sampled_from(
        [TimeOptions(), TimeOptions(exclusions=(Days(frozenset({6})),), tz="Europe/Berlin")]
    ),
    "parents": st.sampled_from([(), ("extract",), ("b", 'a"')]),
    "dormant": st.booleans(),
    "when_busy": st.sampled_from(WhenBusy),
    "allow_overlap": st.booleans(),
    "batch": st.sampled_from([None, "load"]),
}
OWN = ("external_id", "input", "parents")
TERMS = st.fixed_dictionaries({name: FIELDS[name] for name in FIELDS if name not in OWN}).map(
    lambda fields: Terms(**fields)
)
OF_ONE_BATCH = st.tuples(TERMS, st.lists(st.tuples(*(FIELDS[name] for name in OWN)), max_size=4))
manifests = st.lists(OF_ONE_BATCH, max_size=4).map(
    lambda batches: [
        Manifest(external_id, input, terms, parents)
        for terms, items in batches
        for external_id, input, parents in items
    ]
)


@given(manifests)
def test_manifests_are_told_the_same_alone_and_among_others(some: list[Manifest]) -> None:
    told = list(declared_manifests(some))
    assert told == [declared_manifest(one) for one in some]
    for one, text in zip(some, told, strict=True):
        said = json.loads(text)
        assert text == json.dumps(said, sort_keys=True, separators=(",", ":"))
        assert (said["external_id"], said["input"]) == (one.external_id, one.input)
        assert (said["kind"], said["parents"]) == (one.kind, list(one.parents))
        assert (said["enabled"], said["priority"], said["group"]) == (
            one.enabled,
            one.priority,
            one.group.name,
        )


def test_the_text_of_a_manifest_does_not_change_between_versions() -> None:
    """It is compared with what an earlier version stored: another text rewrites every row."""
    load = Manifest("load", '{"a":1}', Terms("work", "dict", every(hours=1), Group("etl")))
    assert declared_manifest(load) == (
        '{"batch":null,"enabled":true,"external_id":"load","group":"etl","input":"{\\"a\\":1}",'
        '"input_type":"dict","join":"all","kind":"interval","max_retries":null,"parents":[],'
        '"priority":0,"retry":null,"schedule":{"cron_expression":null,"fixed_rate":false,'
        '"interval_seconds":3600,"once_at":null,"schedule_kind":"interval","time_zone":null},'
        '"time":{},"timeout":null,"when_busy":"skip","workflow":"work"}'
    )
    assert Declaration("warehouse", {}, (load,)).digest() == (
        "a74044326d98546af53886f7e481b7ddc4969bfe2a3d84c8fdf1a5641f6bd15e"
    )


def test_all_that_is_said_about_a_manifest() -> None:
    terms = Terms(
        workflow="work",
        input_type="int",
        schedule=Never(),
        group=Group("etl", 4),
        priority=3,
        max_retries=0,
        timeout=timedelta(seconds=90),
        enabled=False,
        retry=RetryPolicy(),
        time=TimeOptions(
            misfire_threshold=timedelta(0),
            catch_up_limit=5,
            exclusions=(Days(frozenset({6})),),
            tz="Asia/Tokyo",
        ),
        join="any",
        dormant=True,
        when_busy=WhenBusy.KEEP,
        batch="all",
        allow_overlap=True,
    )
    assert json.loads(declared_manifest(Manifest("load", "7", terms, ("b", "a")))) == {
        "external_id": "load",
        "workflow": "work",
        "input": "7",
        "input_type": "int",
        "kind": "dormant_dependent",
        "schedule": {
            "schedule_kind": "none",
            "interval_seconds": None,
            "cron_expression": None,
            "time_zone": None,
            "once_at": None,
            "fixed_rate": False,
        },
        "time": {
            "misfire_threshold": "0:00:00",
            "catch_up_limit": 5,
            "exclusions": '[{"days":["sat"],"kind":"days","then":"skip"}]',
            "tz": "Asia/Tokyo",
        },
        "group": "etl",
        "parents": ["b", "a"],
        "join": "any",
        "when_busy": "keep",
        "batch": "all",
        "priority": 3,
        "max_retries": 0,
        "retry": "RetryPolicy(delay=datetime.timedelta(seconds=300), multiplier=2.0, "
        "max_delay=datetime.timedelta(seconds=3600))",
        "timeout": 90.0,
        "enabled": False,
        "allow_overlap": True,
    }


def test_a_jitter_is_told_where_there_is_one() -> None:
    jittering = Terms("w", "int", Never(), Group("etl"), retry=RetryPolicy(jitter=0.5))
    told = json.loads(declared_manifest(Manifest("load", "7", jittering)))["retry"]
    assert told.endswith("max_delay=datetime.timedelta(seconds=3600), jitter=0.5)")


def test_a_digest_changes_with_what_is_declared_and_not_with_the_order_of_groups() -> None:
    one, two = Group("etl", 4), Group("loads")
    load = Manifest("load", "7", Terms("work", "int", Never(), one))
    groups = {"etl": one, "loads": two}
    first = Declaration("warehouse", groups, (load,)).digest()
    assert Declaration("warehouse", {"loads": two, "etl": one}, (load,)).digest() == first
    others = [
        Declaration("billing", groups, (load,)),
        Declaration("warehouse", {"etl": one}, (load,)),
        Declaration("warehouse", groups | {"etl": Group("etl", 5)}, (load,)),
        Declaration("warehouse", groups, ()),
    ]
    assert len({first, *(one.digest() for one in others)}) == 5


def test_code_and_run_time_of_one_application_are_the_same_owner() -> None:
    for owner, application in (("a", "a:runtime"), ("a:runtime", "a"), ("a", "a")):
        check_owner("load", owner, application)
    with pytest.raises(OwnedByAnother, match="belongs to the application 'b'"):
        check_owner("load", "b:runtime", "a")
