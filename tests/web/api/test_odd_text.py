"""Text with NUL or lone surrogates: refused where it comes in, escaped where it is stored."""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import urlencode

import pytest

from headway.domain.execution import ExecutionState, Outcome
from headway.runner.outcome import failed
from headway.store import outcomes
from headway.web import pages
from headway.web.routing import ScopedRoute
from tests.builders import OWNER
from tests.web.api.deployment import Api, Deployment, named

NUL, SURROGATE = "a\x00b", "a\ud800"
RULES = {
    NUL: "must not contain NUL (U+0000 at position 2)",
    SURROGATE: "must not contain lone surrogates (U+D800 at position 2)",
}
ODD = named("odd/name 100%")


def first(deployment: Deployment, state: str) -> int:
    return int(deployment.read.get(f"/executions?state={state}").json()["items"][0]["id"])


@pytest.mark.parametrize("text", RULES, ids=["NUL", "surrogate"])
def test_text_that_no_database_holds_is_refused_wherever_the_api_takes_text(
    deployment: Deployment, text: str
) -> None:
    ended = first(deployment, "completed")
    letter = deployment.read.get("/dead-letters").json()["items"][0]["id"]
    before = deployment.read.get("/queue").body
    requests: dict[str, dict[str, object]] = {
        "/queue": {"workflow": "load", "input": {"name": text}},
        f"/manifests/{ODD}/trigger": {"input": {"name": text}},
        f"/executions/{ended}/rerun": {"input": {"name": text}},
        f"/dead-letters/{letter}/requeue": {"input": {"name": text}},
        f"/manifests/{ODD}/cancel": {"reason": text},
        "/groups/loads/cancel": {"reason": text},
        f"/dead-letters/{letter}/acknowledge": {"note": text},
        "/azolla/captures": {"text": text},
        "/azolla/objectives": {"title": "clean", "acceptance_criteria": text},
    }
    for path, body in requests.items():
        answer = deployment.operate.post(path, body)
        assert answer.status == 422, (path, answer.text)
        told = answer.json()["detail"]
        assert RULES[text] in told and "for example" in told and "\n" not in told, told
        assert any(word in told for word in ("name", *body)), told
    assert deployment.read.get("/queue").body == before


def test_a_secret_with_nul_is_refused_without_being_shown(deployment: Deployment) -> None:
    body = {"input": {"name": "users", "password": "gehe\x00im"}}
    answer = deployment.operate.post(f"/manifests/{ODD}/trigger", body)
    assert answer.status == 422
    assert RULES[NUL].partition(" (")[0] in answer.text and "gehe" not in answer.text


def every_page() -> Iterator[ScopedRoute]:
    for router in pages.ROUTERS:
        yield from (route for route in router.declared() if "GET" in (route.methods or ()))


def test_a_page_asked_for_with_nul_says_what_is_wrong(deployment: Deployment) -> None:
    reader = Api(deployment.site, "admin", prefix="")
    tried = 0
    for route in every_page():
        path = route.path_format
        filled = path.replace("{execution_id}", "1").replace("{entry_id}", "1")
        for word in ("{external_id}", "{name}", "{event_id}", "{objective_id}", "{letter_id}"):
            filled = filled.replace(word, "%00")
        asked = [f"{filled}?{one.alias}=%00" for one in route.dependant.query_params]
        for address in [filled, *asked] if "%00" in filled else asked:
            if route.path == "/login" or address.count("{"):
                continue
            answer = reader.get(address)
            assert answer.status in (404, 422), (address, answer.status)
            tried += 1
    assert tried > 25


@pytest.mark.parametrize("path", ["/manifests/off/cancel", "/dead-letters/acknowledge"])
def test_a_form_with_nul_is_refused(deployment: Deployment, path: str) -> None:
    kind = {"content-type": "application/x-www-form-urlencoded"}
    asking = Api(deployment.site, "operate", prefix="")
    sent = urlencode({"reason": NUL, "note": NUL, "letter": "1"}).encode()
    answer = asking.ask("POST", path, sent, kind)
    assert answer.status == 422
    assert RULES[NUL] in answer.text


def stored(deployment: Deployment) -> tuple[int, int, int]:
    """Rows as earlier versions wrote them: an entry, a completed run and a failed one."""
    scene = deployment.scene
    odd = json.dumps({"name": "\ud800\x00<b>", "\x00": "\udfff", "\ud801": 1})
    runs = [scene.pending("load", odd) for _ in range(2)]
    scene.claim()
    failure = failed("load", ValueError("no"))
    with scene.store.writing() as tx:
        kept = Outcome(ExecutionState.COMPLETED, output=json.dumps({"rows": "\ud800\x00"}))
        assert outcomes.finish(tx, OWNER, {runs[0]: kept, runs[1]: failure})
    entry = scene.app.enqueue("load", {"name": "plain"})
    with scene.store.writing() as tx:
        text = json.dumps({"name": "\ud800\x00"})
        tx.connection.exec_driver_sql(
            f"UPDATE headway_work_queue SET input = '{text}' WHERE id = {entry}"
        )
    return entry, runs[0], runs[1]


def test_stored_rows_with_odd_text_break_no_page_and_no_answer(deployment: Deployment) -> None:
    entry, completed, broken = stored(deployment)
    reader = Api(deployment.site, "admin", prefix="")
    for path in (
        f"/executions/{completed}",
        f"/executions/{broken}",
        f"/executions/{completed}/rerun",
        "/executions",
        "/queue",
        "/",
    ):
        page = reader.get(path)
        assert page.status == 200, (path, page.status)
        assert "\x00" not in page.text
    assert r"\ud800" in reader.get(f"/executions/{completed}").text
    read = deployment.read
    assert read.get(f"/executions/{completed}").json()["output"] == {"rows": "\ud800\x00"}
    input = read.get(f"/executions/{broken}").json()["input"]
    assert (input["name"], set(input)) == ("\ud800\x00<b>", {"name", "\x00", r"\ud801"})
    assert read.get(f"/queue/{entry}").status == 200
    assert read.get("/executions").status == 200
    assert read.get("/queue").status == 200
