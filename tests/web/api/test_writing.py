"""Everything that can be done, on both databases: it is done, and noted in the audit."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from headway.domain.masking import MASK
from tests.web.api.deployment import Api, Deployment, named

ODD = named("odd/name 100%")


def audited(deployment: Deployment) -> list[tuple[str, str, str]]:
    items = deployment.admin.get("/audit").json()["items"]
    return [(one["actor"], one["action"], one["subject"]) for one in items]


def test_a_manifest_is_triggered_with_its_own_input_or_another(deployment: Deployment) -> None:
    plain = deployment.operate.post(f"/manifests/{ODD}/trigger")
    assert plain.status == 202, plain.text
    other = deployment.operate.post(
        f"/manifests/{ODD}/trigger",
        {"input": {"name": "orders", "partition": 7}, "delay_seconds": 3600, "max_attempts": 2},
    )
    entry = deployment.read.get(f"/queue/{other.json()['entry_id']}").json()
    assert entry["input"] == {"name": "orders", "partition": 7, "password": MASK}
    later = datetime.fromisoformat(entry["scheduled_at"])
    assert later - datetime.fromisoformat(entry["created_at"]) == timedelta(hours=1)
    assert entry["max_attempts"] == 2
    own = deployment.read.get(f"/queue/{plain.json()['entry_id']}").json()
    assert own["input"] == {"name": "odd", "partition": 0, "password": MASK}
    assert (own["scheduled_at"], own["max_attempts"]) == (None, 1)
    assert audited(deployment)[:2] == [("operate", "manifest.trigger", "odd/name 100%")] * 2


def test_a_manifest_is_switched_by_whoever_has_looked_at_it(deployment: Deployment) -> None:
    seen = deployment.read.get("/manifests/extract-users")
    off = deployment.operate.patch(
        "/manifests/extract-users", {"enabled": False}, if_match=seen.headers["etag"]
    )
    assert (off.status, off.json()["enabled"]) == (200, False)
    late = deployment.operate.patch(
        "/manifests/extract-users", {"enabled": True}, if_match=seen.headers["etag"]
    )
    assert late.status == 412
    on = deployment.operate.patch(
        "/manifests/extract-users", {"enabled": True}, if_match=off.headers["etag"]
    )
    assert (on.status, on.json()["enabled"]) == (200, True)
    actions = [action for _, action, _ in audited(deployment)]
    assert actions == ["manifest.enable", "manifest.disable"]


def test_a_group_is_changed_by_whoever_has_looked_at_it(deployment: Deployment) -> None:
    operate = deployment.operate
    seen = operate.get("/groups/loads").headers["etag"]
    assert operate.patch("/groups/loads", {"priority": 9}).status == 428
    # What moves by itself is no reason to refuse a change.
    deployment.operate.post("/manifests/extract-users/trigger")
    assert operate.get("/groups/loads", if_none_match=seen).status == 200
    wanted = {"max_active_jobs": 1, "priority": 9, "enabled": False}
    changed = operate.patch("/groups/loads", wanted, if_match=seen)
    assert changed.status == 200, changed.text
    assert {name: changed.json()[name] for name in wanted} == wanted
    stale = operate.patch("/groups/loads", {"enabled": False}, if_match=seen)
    assert stale.status == 412
    assert stale.headers["content-type"] == "application/problem+json"
    uncapped = operate.patch(
        "/groups/loads", {"max_active_jobs": None}, if_match=changed.headers["etag"]
    )
    left = {"max_active_jobs": None, "priority": 9, "enabled": False}
    assert {name: uncapped.json()[name] for name in left} == left
    assert operate.get("/groups/loads").headers["etag"] == uncapped.headers["etag"]


def test_a_group_is_triggered_and_cancelled(deployment: Deployment) -> None:
    assert deployment.operate.post("/groups/broken/trigger").json() == {"queued": 3}
    assert audited(deployment)[0] == ("operate", "group.trigger", "broken")
    done = deployment.operate.post("/groups/broken/cancel", {"reason": "wrong day"})
    assert done.json() == {"cancelled": 3, "requested": 0, "finished": None}
    running = deployment.operate.post("/manifests/extract-users/cancel")
    assert running.json() == {"cancelled": 0, "requested": 1, "finished": None}
    assert [one["detail"].get("reason") for one in told(deployment)][:2] == [None, "wrong day"]


def told(deployment: Deployment) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = deployment.admin.get("/audit").json()["items"]
    return items


@pytest.mark.parametrize("path", ["/manifests/extract-users", "/groups/loads", "/executions/{}"])
def test_the_reason_of_a_cancelling_is_kept(deployment: Deployment, path: str) -> None:
    running = first(deployment.read, "in_progress")
    asked = deployment.operate.post(f"{path.format(running)}/cancel", {"reason": "wrong day"})
    assert asked.json() == {"cancelled": 0, "requested": 1, "finished": None}
    run = deployment.read.get(f"/executions/{running}").json()
    assert (run["cancel_requested"], run["cancel_reason"]) == (True, "wrong day")
    assert told(deployment)[0]["detail"]["reason"] == "wrong day"


def test_an_execution_is_cancelled_and_run_again(deployment: Deployment) -> None:
    ended = first(deployment.read, "completed")
    again = deployment.operate.post(f"/executions/{ended}/rerun")
    assert again.status == 202, again.text
    entry = deployment.read.get(f"/queue/{again.json()['entry_id']}").json()
    assert (entry["source"], entry["max_attempts"]) == ("rerun", 1)
    assert entry["input"] == {"name": "users", "partition": 0, "password": MASK}
    changed = {"input": {"name": "other"}, "max_attempts": 3}
    other = deployment.operate.post(f"/executions/{ended}/rerun", changed)
    entry = deployment.read.get(f"/queue/{other.json()['entry_id']}").json()
    assert (entry["input"]["name"], entry["max_attempts"]) == ("other", 3)
    over = deployment.operate.post(f"/executions/{ended}/cancel")
    assert over.json() == {"cancelled": 0, "requested": 0, "finished": "completed"}
    running = first(deployment.read, "in_progress")
    assert deployment.operate.post(f"/executions/{running}/cancel").json()["requested"] == 1


def first(read: Api, state: str) -> int:
    return int(read.get(f"/executions?state={state}").json()["items"][0]["id"])


def test_only_what_is_registered_can_be_queued(deployment: Deployment) -> None:
    asked = {"workflow": "load", "input": {"name": "x"}, "priority": 9, "max_attempts": 4}
    queued = deployment.operate.post("/queue", asked)
    assert queued.status == 202, queued.text
    entry = queued.json()["entry_id"]
    found = deployment.read.get(f"/queue/{entry}").json()
    assert (found["priority"], found["max_attempts"], found["input"]["name"]) == (9, 4, "x")
    done = deployment.operate.post(f"/queue/{entry}/cancel", {"reason": "wrong day"})
    assert done.json() == {"cancelled": 1, "requested": 0, "finished": None}
    assert told(deployment)[0]["detail"]["reason"] == "wrong day"
    assert deployment.read.get(f"/queue/{entry}").status == 404
    before = deployment.read.get("/queue").body
    for workflow in ("os.system", "builtins.eval", "__class__", "nothing"):
        answer = deployment.operate.post("/queue", {"workflow": workflow, "input": "true"})
        assert answer.status == 422
        assert workflow in answer.json()["detail"]
    wrong = deployment.operate.post("/queue", {"workflow": "load", "input": {"nme": "x"}})
    assert wrong.status == 422
    assert "nme" in wrong.json()["detail"]
    assert deployment.read.get("/queue").body == before


def test_dead_letters_are_resolved_singly_and_in_batches(deployment: Deployment) -> None:
    operate = deployment.operate
    requeued = operate.post("/dead-letters/1/requeue", {"note": "back", "input": {"name": "ok"}})
    assert requeued.status == 200, requeued.text
    entry = requeued.json()["entry_id"]
    assert operate.get(f"/queue/{entry}").json()["input"]["name"] == "ok"
    assert requeued.json() == {"message": f"requeued as entry {entry}", "entry_id": entry}
    again = operate.post("/dead-letters/1/acknowledge")
    assert again.status == 409
    assert "retried" in again.json()["detail"]
    assert operate.post("/dead-letters/99/acknowledge").status == 404
    some = operate.post("/dead-letters/acknowledge", {"ids": [1, 2], "note": "known"})
    assert some.json() == {"count": 1, "message": "1 acknowledged"}
    rest = operate.post("/dead-letters/requeue", {"all": True, "group": "broken"})
    assert rest.json()["count"] == 1
    letters = operate.get("/dead-letters").json()["items"]
    assert [(one["status"], one["resolution_note"]) for one in letters] == [
        ("retried", None),
        ("acknowledged", "known"),
        ("retried", "back"),
    ]


def resolved(deployment: Deployment) -> dict[int, tuple[str, str | None]]:
    items = deployment.read.get("/dead-letters").json()["items"]
    return {
        one["id"]: (one["status"], one["resolution_note"])
        for one in items
        if one["status"] != "awaiting_intervention"
    }


def test_a_dead_letter_is_requeued_as_it_failed_unless_told_otherwise(
    deployment: Deployment,
) -> None:
    for letter, body in ((1, None), (2, {"note": "again"})):
        done = deployment.operate.post(f"/dead-letters/{letter}/requeue", body).json()
        entry = deployment.read.get(f"/queue/{done['entry_id']}").json()
        assert (entry["input"]["name"], entry["external_id"]) == ("bad", f"broken-{letter}")
    assert resolved(deployment) == {1: ("retried", None), 2: ("retried", "again")}


def test_a_dead_letter_is_acknowledged_with_a_note(deployment: Deployment) -> None:
    done = deployment.operate.post("/dead-letters/2/acknowledge", {"note": "known"})
    assert done.json() == {"message": "acknowledged", "entry_id": None}
    assert resolved(deployment) == {2: ("acknowledged", "known")}
    again = deployment.operate.post("/dead-letters/2/requeue")
    assert again.status == 409
    assert again.json()["detail"] == "dead letter 2 is resolved already: acknowledged"


@pytest.mark.parametrize(
    ("verb", "status"), [("requeue", "retried"), ("acknowledge", "acknowledged")]
)
def test_a_batch_of_dead_letters_is_those_that_are_named(
    deployment: Deployment, verb: str, status: str
) -> None:
    def sent(**body: object) -> object:
        return deployment.operate.post(f"/dead-letters/{verb}", body).json()["count"]

    assert sent(all=True, group="loads") == 0
    assert sent(all=True, workflow="work") == 0
    assert resolved(deployment) == {}
    assert sent(ids=[3], note="one") == 1
    assert resolved(deployment) == {3: (status, "one")}
    assert sent(all=True, group="broken", workflow="load", note="rest") == 2
    assert resolved(deployment) == {1: (status, "rest"), 2: (status, "rest"), 3: (status, "one")}


def test_the_dead_letter_of_a_removed_manifest_is_resolved_and_stays_so(
    deployment: Deployment,
) -> None:
    before = deployment.read.get("/overview").json()["summary"]["dead_letters"]
    letter = deployment.read.get("/dead-letters/1").json()
    deployment.scene.remove(letter["external_id"])
    read = deployment.read.get("/dead-letters/1").json()
    assert (read["status"], read["resolution_note"]) == (
        "acknowledged",
        "the manifest is no longer declared",
    )
    assert deployment.read.get("/overview").json()["summary"]["dead_letters"] == before - 1
    refused = deployment.operate.post("/dead-letters/1/requeue")
    assert refused.status == 409
    assert refused.json()["detail"].startswith(
        f"dead letter 1 cannot be requeued: its manifest '{letter['external_id']}' was removed; "
    )


def test_which_dead_letters_are_meant_has_to_be_said(deployment: Deployment) -> None:
    wrong: list[dict[str, object]] = [
        {},
        {"ids": [1], "all": True},
        {"ids": []},
        {"ids": [1], "group": "broken"},
    ]
    wrong += [{"ids": [1], "workflow": "load"}, {"ids": [0]}, {"ids": list(range(1, 1002))}]
    for body in wrong:
        for verb in ("requeue", "acknowledge"):
            answer = deployment.operate.post(f"/dead-letters/{verb}", body)
            assert answer.status == 422, body
    waiting = deployment.read.get("/dead-letters?status=awaiting_intervention").json()["items"]
    assert len(waiting) == 3
