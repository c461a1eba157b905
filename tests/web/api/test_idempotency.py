"""A write with a key is done once, however often it is sent."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tests.web.api.deployment import Deployment


def queued(deployment: Deployment) -> int:
    return len(deployment.read.get("/queue?limit=200").json()["items"])


def test_the_same_request_is_done_once(deployment: Deployment) -> None:
    before = queued(deployment)
    body = {"delay_seconds": 5}
    path = "/manifests/off/trigger"
    first = deployment.operate.post(path, body, idempotency_key="order-1")
    again = deployment.operate.post(path, body, idempotency_key="order-1")
    assert (first.status, again.status) == (202, 202)
    assert first.body == again.body
    assert first.headers["content-type"] == again.headers["content-type"] == "application/json"
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    assert queued(deployment) == before + 1
    assert len(deployment.admin.get("/audit").json()["items"]) == 1
    other = deployment.operate.post(path, body, idempotency_key="order-2")
    assert other.json() != first.json()
    own = deployment.admin.post(path, body, idempotency_key="order-1")
    assert own.json() != first.json()


def test_a_key_used_for_something_else_is_a_conflict(deployment: Deployment) -> None:
    deployment.operate.post("/manifests/off/trigger", {}, idempotency_key="k")
    for path, body in (
        ("/manifests/off/trigger", {"max_attempts": 2}),
        ("/manifests/off/cancel", {}),
    ):
        answer = deployment.operate.post(path, body, idempotency_key="k")
        assert answer.status == 409, path
        assert "'k'" in answer.json()["detail"]


def test_what_failed_may_be_tried_again_with_the_same_key(deployment: Deployment) -> None:
    wrong = {"input": {"nme": 1}}
    for _ in range(2):
        assert (
            deployment.operate.post("/manifests/off/trigger", wrong, idempotency_key="k").status
            == 422
        )
    right = deployment.operate.post("/manifests/off/trigger", {}, idempotency_key="k")
    assert right.status == 202
    assert "idempotency-replayed" not in right.headers


def test_a_key_has_a_shape(deployment: Deployment) -> None:
    for key in ("", "two words", "x" * 256):
        answer = deployment.operate.post("/manifests/off/trigger", {}, idempotency_key=key)
        assert answer.status == 422, key


def test_of_many_at_once_one_does_it(deployment: Deployment) -> None:
    before = queued(deployment)

    def send(_: int) -> bytes:
        return deployment.operate.post(
            "/queue", {"workflow": "load", "input": {"name": "x"}}, idempotency_key="k"
        ).body

    with ThreadPoolExecutor(8) as pool:
        answers = set(pool.map(send, range(16)))
    assert len(answers) == 1
    assert queued(deployment) == before + 1


def test_a_change_is_answered_with_what_it_has_made(deployment: Deployment) -> None:
    tag = deployment.read.get("/groups/loads").headers["etag"]
    first = deployment.operate.patch(
        "/groups/loads", {"priority": 7}, if_match=tag, idempotency_key="k"
    )
    assert (first.status, first.json()["priority"]) == (200, 7)
    again = deployment.operate.patch(
        "/groups/loads", {"priority": 7}, if_match=tag, idempotency_key="k"
    )
    assert (again.status, again.body) == (200, first.body)
    assert again.headers["etag"] == first.headers["etag"]
    next_one = deployment.operate.patch(
        "/groups/loads", {"priority": 8}, if_match=again.headers["etag"], idempotency_key="k2"
    )
    assert next_one.status == 200
    reused = deployment.operate.patch(
        "/groups/loads", {"priority": 8}, if_match=next_one.headers["etag"], idempotency_key="k2"
    )
    assert reused.status == 409, "it names another state of the group"
