"""Everything that can be done, on both databases: it is done, and noted in the audit."""

from __future__ import annotations

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
    assert entry["scheduled_at"] is not None
    assert entry["max_attempts"] == 2
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
    changed = operate.patch("/groups/loads", {"max_active_jobs": 1, "priority": 9}, if_match=seen)
    assert changed.status == 200, changed.text
    assert (changed.json()["max_active_jobs"], changed.json()["priority"]) == (1, 9)
    stale = operate.patch("/groups/loads", {"enabled": False}, if_match=seen)
    assert stale.status == 412
    assert stale.headers["content-type"] == "application/problem+json"
    uncapped = operate.patch(
        "/groups/loads", {"max_active_jobs": None}, if_match=changed.headers["etag"]
    )
    assert (uncapped.json()["max_active_jobs"], uncapped.json()["priority"]) == (None, 9)
    assert operate.get("/groups/loads").headers["etag"] == uncapped.headers["etag"]


def test_a_group_is_triggered_and_cancelled(deployment: Deployment) -> None:
    assert deployment.operate.post("/groups/broken/trigger").json() == {"queued": 3}
    done = deployment.operate.post("/groups/broken/cancel", {"reason": "wrong day"})
    assert done.json() == {"cancelled": 3, "requested": 0, "finished": None}
    running = deployment.operate.post("/manifests/extract-users/cancel")
    assert running.json() == {"cancelled": 0, "requested": 1, "finished": None}


def test_an_execution_is_cancelled_and_run_again(deployment: Deployment) -> None:
    ended = first(deployment.read, "completed")
    again = deployment.operate.post(f"/executions/{ended}/rerun")
    assert again.status == 202, again.text
    entry = again.json()["entry_id"]
    assert deployment.read.get(f"/queue/{entry}").json()["source"] == "rerun"
    other = deployment.operate.post(f"/executions/{ended}/rerun", {"input": {"name": "other"}})
    entry = other.json()["entry_id"]
    assert deployment.read.get(f"/queue/{entry}").json()["input"]["name"] == "other"
    over = deployment.operate.post(f"/executions/{ended}/cancel")
    assert over.json() == {"cancelled": 0, "requested": 0, "finished": "completed"}
    running = first(deployment.read, "in_progress")
    assert deployment.operate.post(f"/executions/{running}/cancel").json()["requested"] == 1


def first(read: Api, state: str) -> int:
    return int(read.get(f"/executions?state={state}").json()["items"][0]["id"])


def test_only_what_is_registered_can_be_queued(deployment: Deployment) -> None:
    queued = deployment.operate.post("/queue", {"workflow": "load", "input": {"name": "x"}})
    assert queued.status == 202, queued.text
    entry = queued.json()["entry_id"]
    assert deployment.operate.post(f"/queue/{entry}/cancel").json()["cancelled"] == 1
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
    again = operate.post("/dead-letters/1/acknowledge")
    assert again.status == 409
    assert "retried" in again.json()["detail"]
    assert operate.post("/dead-letters/99/acknowledge").status == 404
    some = operate.post("/dead-letters/acknowledge", {"ids": [1, 2], "note": "known"})
    assert some.json() == {"count": 1, "message": "1 acknowledged"}
    rest = operate.post("/dead-letters/requeue", {"all": True, "group": "broken"})
    assert rest.json()["count"] == 1
    letters = operate.get("/dead-letters").json()["items"]
    assert {one["status"] for one in letters} == {"retried", "acknowledged"}


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
    for body in wrong:
        answer = deployment.operate.post("/dead-letters/requeue", body)
        assert answer.status == 422, body
    waiting = deployment.read.get("/dead-letters?status=awaiting_intervention").json()["items"]
    assert len(waiting) == 3
