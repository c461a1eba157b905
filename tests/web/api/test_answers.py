"""What the API answers, whole: no field is missing, and each says what is so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headway import Headway, every
from headway.applying import apply_declarations
from headway.domain.masking import MASK
from headway.store import leases
from headway.store.engine import Store
from headway.store.servers import ServerProcess
from headway.web.api.encoding import stored
from headway.web.app import build_app
from headway.web.security.access import Access
from headway.web.security.identity import Identity, Scope
from tests.web.api.deployment import BAD, Deployment, deployed, named
from tests.web.site import listening

ODD = "odd/name 100%"
READER = Identity("rita", {Scope.READ})
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")

RUN: dict[str, Any] = {
    "id": 1,
    "entry_id": 1,
    "external_id": "extract-users",
    "group_name": "loads",
    "workflow": "load",
    "source": "schedule",
    "state": "completed",
    "attempt": 1,
    "max_attempts": 1,
    "crashes": 0,
    "queued_at": "a time",
    "scheduled_for": "a time",
    "dispatched_at": "a time",
    "started_at": "a time",
    "finished_at": "a time",
    "owner": "me",
    "task_server": "local",
    "cancel_requested": False,
    "running_step": None,
    "progress": None,
    "progress_note": None,
    "failure": None,
    "seconds": "a number",
}
RUNNING = RUN | {
    "id": 6,
    "entry_id": 6,
    "source": "trigger",
    "state": "in_progress",
    "scheduled_for": None,
    "finished_at": None,
    "running_step": "load",
    "seconds": None,
}
FAILED = RUN | {
    "id": 2,
    "entry_id": 2,
    "external_id": "broken-1",
    "group_name": "broken",
    "state": "failed",
    "failure": "load: ValueError: no rows <script>alert(1)</script>",
}
ENTRY: dict[str, Any] = {
    "id": 7,
    "external_id": ODD,
    "workflow": "load",
    "group_name": "odd/group",
    "group_priority": 0,
    "source": "trigger",
    "priority": 0,
    "created_at": "a time",
    "scheduled_at": None,
    "scheduled_for": None,
    "attempts": 0,
    "max_attempts": 1,
    "delayed": False,
}
LETTER: dict[str, Any] = {
    "id": 1,
    "external_id": "broken-1",
    "workflow": "load",
    "group_name": "broken",
    "status": "awaiting_intervention",
    "dead_lettered_at": "a time",
    "reason": "failed once (max_attempts 1)",
    "failures": 1,
    "execution_id": 2,
    "resolved_at": None,
    "resolution_note": None,
    "retry_execution_id": None,
}
MANIFEST: dict[str, Any] = {
    "external_id": "load-users",
    "workflow": "load",
    "group_name": "loads",
    "schedule_kind": "dependent",
    "schedule": "after extract-users",
    "enabled": True,
    "group_enabled": True,
    "state": "idle",
    "running": False,
    "queued": False,
    "dead_lettered": False,
    "last_success_at": "a time",
    "settled_until": None,
    "wake_at": None,
}
GROUP: dict[str, Any] = {
    "name": "loads",
    "max_active_jobs": 2,
    "priority": 5,
    "enabled": True,
    "state": "running",
    "manifests": 2,
    "queued": 0,
    "active": 1,
    "completed": 2,
    "failed": 0,
    "cancelled": 0,
    "dead_letters": 0,
    "run_seconds": "a number",
}


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """One deployment for all that only read."""
    with deployed(f"sqlite:///{tmp_path_factory.mktemp('answers') / 'headway.db'}") as made:
        yield made


def plain(told: Any) -> Any:
    """An answer in which moments and measured lengths of time have the same names in every run."""
    if isinstance(told, dict):
        return {name: plain(value) for name, value in told.items()}
    if isinstance(told, list):
        return [plain(value) for value in told]
    if isinstance(told, str) and TIME.fullmatch(told):
        return "a time"
    return "a number" if isinstance(told, float) else told


def answered(one: Deployment, path: str) -> Any:
    return plain(one.admin.get(path).json())


def item(one: Deployment, path: str, key: str, value: object) -> Any:
    [found] = [it for it in answered(one, path)["items"] if it[key] == value]
    return found


def input_of(name: str) -> dict[str, object]:
    return {"name": name, "partition": 0, "password": MASK}


def test_executions_are_listed_whole(one: Deployment) -> None:
    assert item(one, "/executions", "id", 1) == RUN
    assert item(one, "/executions", "id", 6) == RUNNING
    assert item(one, "/executions", "id", 2) == FAILED
    assert [run["id"] for run in answered(one, "/executions")["items"]] == [6, 5, 4, 3, 2, 1]
    own = answered(one, "/manifests/extract-users/executions")
    assert own == {"items": [RUNNING, RUN], "next": None}


def test_an_execution_is_told_whole(one: Deployment) -> None:
    seen = ("failure", "seconds")
    more = {
        "priority": 5,
        "scheduled_at": None,
        "cancel_reason": None,
        "input_type": "Table",
        "steps": [{"name": "load", "started_at": "a time", "seconds": "a number"}],
    }
    assert answered(one, "/executions/1") == {
        name: value for name, value in RUN.items() if name not in seen
    } | more | {
        "input": input_of("users"),
        "output": {"rows": 3},
        "failure": None,
        "attempts": [RUN],
    }
    failed = answered(one, "/executions/2")
    assert failed["failure"].pop("traceback").startswith("Traceback (most recent call last):\n")
    assert failed == {name: value for name, value in FAILED.items() if name not in seen} | more | {
        "priority": 0,
        "input": input_of(BAD),
        "output": None,
        "failure": {
            "step": "load",
            "type": "ValueError",
            "message": "no rows <script>alert(1)</script>",
            "final": False,
        },
        "attempts": [FAILED],
    }
    assert answered(one, "/executions/6")["steps"] == [
        {"name": "load", "started_at": "a time", "seconds": None}
    ]


def test_the_timeline_is_that_of_the_last_hour(one: Deployment) -> None:
    told = one.read.get("/timeline").json()
    assert told.keys() == {"start", "end", "executions", "truncated"}
    end = datetime.fromisoformat(told["end"])
    assert end - datetime.fromisoformat(told["start"]) == timedelta(hours=1)
    assert timedelta() <= datetime.now(UTC) - end < timedelta(minutes=1)
    assert [run["id"] for run in told["executions"]] == [1, 2, 3, 4, 5, 6]
    assert plain(told["executions"][0]) == RUN
    assert told["truncated"] is False
    some = one.read.get("/timeline?limit=2").json()
    assert ([run["id"] for run in some["executions"]], some["truncated"]) == ([5, 6], True)
    own = one.read.get("/timeline?group=loads").json()["executions"]
    assert [run["id"] for run in own] == [1, 5, 6]


@pytest.mark.parametrize(
    ("query", "start", "end", "runs"),
    [
        ("end=2020-01-01T00:00:00Z", "2019-12-31T23:00:00Z", "2020-01-01T00:00:00Z", 0),
        ("start=2020-01-01T00:00:00Z", "2020-01-01T00:00:00Z", None, 6),
        (
            "start=2020-01-01T00:00:00Z&end=2020-01-03T00:00:00Z",
            "2020-01-01T00:00:00Z",
            "2020-01-03T00:00:00Z",
            0,
        ),
    ],
)
def test_the_timeline_is_that_of_the_times_asked_for(
    one: Deployment, query: str, start: str, end: str | None, runs: int
) -> None:
    told = one.read.get(f"/timeline?{query}").json()
    assert (told["start"], len(told["executions"])) == (start, runs)
    assert end is None or told["end"] == end


def test_the_queue_is_listed_whole(one: Deployment) -> None:
    ad_hoc = {"id": 8, "external_id": None, "group_name": None, "source": "ad_hoc"}
    assert answered(one, "/queue") == {"items": [ENTRY, ENTRY | ad_hoc], "next": None}


def test_an_entry_is_told_whole(one: Deployment) -> None:
    beside = ("group_priority", "delayed")
    own = {name: value for name, value in ENTRY.items() if name not in beside}
    assert answered(one, "/queue/7") == own | {"input": input_of("odd")}


def test_dead_letters_are_told_whole(one: Deployment) -> None:
    assert item(one, "/dead-letters", "id", 1) == LETTER
    assert [letter["id"] for letter in answered(one, "/dead-letters")["items"]] == [3, 2, 1]
    told = {"input": input_of(BAD), "executions": [FAILED]}
    assert answered(one, "/dead-letters/1") == LETTER | told


def test_manifests_are_listed_whole(one: Deployment) -> None:
    assert item(one, "/manifests", "external_id", "load-users") == MANIFEST
    assert item(one, "/manifests", "external_id", "extract-users") == MANIFEST | {
        "external_id": "extract-users",
        "schedule_kind": "interval",
        "schedule": "every 1 hour",
        "state": "running",
        "running": True,
        "settled_until": "a time",
        "wake_at": "a time",
    }
    found = item(one, "/manifests", "external_id", "broken-2")
    assert (found["state"], found["dead_lettered"], found["last_success_at"]) == (
        "failed",
        True,
        None,
    )
    assert item(one, "/manifests", "external_id", ODD)["queued"] is True
    assert item(one, "/manifests", "external_id", "off")["enabled"] is False


def test_a_manifest_is_told_whole(one: Deployment) -> None:
    definition = {
        "input": input_of("users"),
        "input_type": "Table",
        "priority": 0,
        "time_zone": None,
        "exclusions": [],
        "misfire_policy": None,
        "misfire_threshold": None,
        "catch_up_limit": None,
        "first_run": None,
        "variance": None,
        "max_retries": None,
        "retry": None,
        "timeout": None,
        "join": "all",
        "when_busy": None,
        "allow_overlap": False,
        "owner": "tests",
        "batch": None,
        "scheduled_since": "a time",
        "created_at": "a time",
        "updated_at": "a time",
    }
    run = RUN | {"id": 5, "entry_id": 5, "external_id": "load-users", "source": "dependent"}
    edge = {"group_name": "loads", "enabled": True, "last_success_at": "a time", "fresh": False}
    assert answered(one, "/manifests/load-users") == MANIFEST | {
        "definition": definition,
        "parents": [edge | {"external_id": "extract-users", "state": "running"}],
        "parent_count": 1,
        "children": [],
        "child_count": 0,
        "next_runs": [],
        "executions": [run | {"scheduled_for": None}],
        "dead_letter": None,
        "entries": [],
        "trouble": None,
    }
    extract = answered(one, "/manifests/extract-users")
    assert extract["children"] == [edge | {"external_id": "load-users", "state": "idle"}]
    assert (extract["parent_count"], extract["child_count"]) == (0, 1)
    broken = answered(one, "/manifests/broken-1")
    assert broken["dead_letter"] == LETTER
    assert (broken["definition"]["max_retries"], broken["definition"]["batch"]) == (1, "broken")
    assert answered(one, f"/manifests/{named(ODD)}")["entries"] == [ENTRY]


def test_lengths_of_time_are_told_in_seconds(deployment: Deployment) -> None:
    scene = deployment.scene
    scene.app.schedule(
        "work",
        "slow",
        None,
        every(hours=1),
        misfire_threshold=timedelta(minutes=2),
        variance=timedelta(minutes=5),
        timeout=timedelta(seconds=90),
    )
    scene.apply()
    told = deployment.read.get("/manifests/slow").json()["definition"]
    assert (told["variance"], told["timeout"], told["misfire_threshold"]) == (300, 90, 120)


def test_the_next_runs_are_told_whole(one: Deployment) -> None:
    coming = one.read.get("/manifests/extract-users/next-runs").json()
    expected = one.scene.history.manifests.detail("extract-users").next_runs
    assert len(expected) == 5
    shown = [(run.at, run.stands_for) for run in expected]
    assert [(iso(at), iso(due)) for at, due in shown] == [
        (run["at"], run["stands_for"]) for run in coming["items"]
    ]
    assert all(run.keys() == {"at", "stands_for", "moved"} for run in coming["items"])
    assert answered(one, "/manifests/extract-users")["next_runs"] == plain(coming["items"])


def iso(moment: Any) -> str:
    return str(moment.isoformat()).replace("+00:00", "Z")


def test_groups_are_told_whole(one: Deployment) -> None:
    assert item(one, "/groups", "name", "loads") == GROUP
    assert answered(one, "/groups/loads") == GROUP | {
        "created_at": "a time",
        "updated_at": "a time",
        "holders": [RUNNING],
        "parents": [],
        "children": [],
    }
    broken = item(one, "/groups", "name", "broken")
    assert (broken["failed"], broken["dead_letters"], broken["state"]) == (3, 3, "failed")
    assert item(one, "/groups", "name", "odd/group")["queued"] == 1


def test_the_graph_is_told_whole(one: Deployment) -> None:
    around = answered(one, "/graph?view=manifests&around=load-users")
    extract = {"name": "extract-users", "state": "running", "group": "loads"}
    load = {"name": "load-users", "state": "idle", "group": "loads"}
    edge = {"parent": "extract-users", "child": "load-users", "weight": 1}
    assert around == {
        "nodes": [extract, load],
        "edges": [edge],
        "truncated": False,
        "around": "load-users",
    }
    cut = {"nodes": [extract], "edges": [], "truncated": True, "around": None}
    assert answered(one, "/graph?view=manifests&group=loads&limit=1") == cut
    whole = answered(one, "/graph?view=manifests&group=loads")
    assert whole == {"nodes": [extract, load], "edges": [edge], "truncated": False, "around": None}
    groups = answered(one, "/graph")
    assert [node["name"] for node in groups["nodes"]] == ["broken", "loads", "odd/group", "resting"]
    assert [node["name"] for node in answered(one, "/graph?around=loads")["nodes"]] == ["loads"]
    assert len(answered(one, "/graph?limit=2")["nodes"]) == 2


def test_why_is_told_with_every_gate(one: Deployment) -> None:
    told = answered(one, "/queue/8/why")
    gates = told.pop("gates")
    assert told == {
        "subject": "a run of load",
        "answer": "a run of load does not run because no worker is alive; it can when one is "
        "started",
        "entry": 8,
        "execution": None,
    }
    assert [gate["name"] for gate in gates] == ["delay over", "global cap", "worker", "dispatcher"]
    assert gates[2] == {
        "name": "worker",
        "stage": "dispatch",
        "passed": False,
        "sentence": "no worker is alive",
        "until": "when one is started",
        "at": None,
    }
    assert answered(one, "/executions/1/why")["execution"] == 1
    assert answered(one, "/manifests/off/why")["subject"] == "off"


def test_the_overview_is_told_whole(one: Deployment) -> None:
    told = answered(one, "/overview?limit=1")
    assert told["summary"] == {
        "now": "a time",
        "queued": 2,
        "delayed": 0,
        "pending": 0,
        "running": 1,
        "completed_per_minute": "a number",
        "failed_per_minute": "a number",
        "success_rate": "a number",
        "dead_letters": 3,
        "workers": 0,
        "slots": 0,
    }
    [run] = told["next_runs"]
    assert run == {
        "external_id": "extract-users",
        "group_name": "loads",
        "workflow": "load",
        "at": "a time",
    }
    letters = [found for found in told["attention"] if found["kind"] == "dead_letter"]
    assert letters == [
        {
            "kind": "dead_letter",
            "subject": "broken-3",
            "sentence": "broken-3 waits for a person: failed once (max_attempts 1)",
            "since": "a time",
        }
    ]
    every = answered(one, "/overview")["attention"]
    assert [found["kind"] for found in every].count("dead_letter") == 3


def test_the_overview_has_as_many_coming_runs_as_are_asked_for(deployment: Deployment) -> None:
    deployment.scene.app.schedule("work", "second", None, every(hours=1))
    deployment.scene.apply()
    for limit, runs in ((1, 1), (2, 2)):
        told = deployment.read.get(f"/overview?limit={limit}").json()
        assert len(told["next_runs"]) == runs


@pytest.mark.parametrize(
    ("query", "step", "points"),
    [("", 60, 60), ("?span=hour", 60, 60), ("?span=day", 3600, 24), ("?span=week", 3600, 168)],
)
def test_throughput_is_that_of_the_span(
    one: Deployment, query: str, step: float, points: int
) -> None:
    told = one.read.get(f"/throughput{query}").json()
    assert (told["step"], len(told["points"])) == (step, points)
    assert plain(told["points"][0]) == {
        "start": "a time",
        "completed": 0,
        "failed": 0,
        "cancelled": 0,
        "run_seconds": "a number",
    }
    assert sum(point["completed"] for point in told["points"]) == 2
    assert sum(point["failed"] for point in told["points"]) == 3


def test_workflows_are_told_with_the_input_they_take(one: Deployment) -> None:
    told = answered(one, "/workflows")["items"]
    assert [flow["name"] for flow in told] == ["load", "work"]
    assert told[0] == answered(one, "/workflows/load")
    taken = told[0]["input"]
    assert told[0] == {"name": "load", "steps": ["load"], "input": taken}
    schema = taken.pop("json_schema")
    assert taken == {"workflow": "load", "input_type": "Table", "known": True}
    assert schema["required"] == ["name"]
    assert schema["properties"].keys() == {"name", "partition", "password"}
    own = answered(one, f"/manifests/{named(ODD)}/input-schema")
    assert own == taken | {"json_schema": schema}


def test_the_input_of_a_workflow_that_is_not_known_here_is_empty(deployment: Deployment) -> None:
    other = Headway("other")
    other.workflow("elsewhere")(lambda: None)
    other.schedule("elsewhere", "far", None)
    apply_declarations(other, deployment.scene.store)
    assert deployment.read.get("/manifests/far/input-schema").json() == {
        "workflow": "elsewhere",
        "input_type": "",
        "known": False,
        "json_schema": {},
    }


def test_servers_are_told_whole(deployment: Deployment) -> None:
    server = ServerProcess("z", "host-1", 7, ["worker"], ["load"], 4)
    with deployment.scene.store.writing() as tx:
        leases.register(tx, server, timedelta(minutes=1))
    assert answered(deployment, "/servers") == {
        "items": [
            {
                "id": "z",
                "host": "host-1",
                "pid": 7,
                "roles": ["worker"],
                "workflows": ["load"],
                "slots": 4,
                "running": 0,
                "started_at": "a time",
                "renewed_at": "a time",
                "expires_at": "a time",
                "unbroken_since": "a time",
                "alive": True,
                "late": False,
            }
        ]
    }


def test_settings_are_told_with_their_variables(one: Deployment) -> None:
    told = answered(one, "/settings")
    assert told["application"] == "tests"
    assert told["database"] == one.scene.url
    items = {setting["name"]: setting for setting in told["items"]}
    assert items["max_active_jobs"] == {
        "name": "max_active_jobs",
        "variable": "HEADWAY_MAX_ACTIVE_JOBS",
        "value": "10",
    }
    assert items.keys() == type(one.scene.app.settings).model_fields.keys()


def test_the_password_of_the_database_is_not_told() -> None:
    store = Store("postgresql+psycopg://headway:geheim@db.example.com/headway")
    made = build_app(Headway("shop"), store, Access(lambda request: READER))
    with listening(made) as site:
        told = site.get("/api/v1/settings").json()
    store.close()
    assert told["application"] == "shop"
    assert told["database"] == "postgresql://headway:***@db.example.com/headway"


def test_the_audit_is_told_whole(deployment: Deployment) -> None:
    deployment.operate.post("/manifests/off/trigger")
    deployment.operate.post("/manifests/extract-users/cancel", {"reason": "wrong day"})
    later, first = answered(deployment, "/audit")["items"]
    assert first == {
        "id": 1,
        "at": "a time",
        "actor": "operate",
        "action": "manifest.trigger",
        "subject": "off",
        "detail": {"entry": 9},
    }
    assert (later["id"], later["action"], later["subject"]) == (
        2,
        "manifest.cancel",
        "extract-users",
    )
    assert later["detail"]["reason"] == "wrong day"


def test_stored_text_that_is_no_json_is_told_as_it_is() -> None:
    assert stored("half a {") == "half a {"
    assert stored(None) is None
