"""Bad requests of every kind are refused with a problem that helps; nothing is a server error."""

from __future__ import annotations

import base64
import gzip
import json
import socket
from collections.abc import Iterator

import pytest

from headway.web import api
from headway.web.api.route import ApiRoute
from headway.web.routing import ScopedRoute
from tests.web.api.deployment import JSON, Api, Deployment, deployed
from tests.web.site import Answered

HOSTILE = [
    "'; DROP TABLE headway_manifest; --",
    "' OR '1'='1",
    '" OR ""="',
    "1; SELECT pg_sleep(5)",
    "%' UNION SELECT password FROM pg_shadow --",
    "\\",
    "%",
    "_",
    "{{7*7}}",
    "<script>alert(1)</script>",
    "../../etc/passwd",
    "\x00",
    "a\nb",
    "\u202eabc",
    "x" * 300,
    "-1",
    "9" * 30,
    "NaN",
    "2030-13-45",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59-23:59",
]


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """One deployment for all that changes nothing."""
    with deployed(f"sqlite:///{tmp_path_factory.mktemp('bad') / 'headway.db'}") as made:
        yield made


def problem(answer: Answered, status: int) -> dict[str, object]:
    assert answer.status == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    told: dict[str, object] = answer.json()
    assert told["status"] == status
    assert told["detail"]
    assert "Traceback" not in answer.text
    return told


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/manifests?limit=-1", "limit"),
        ("/manifests?limit=1000000000", "200"),
        ("/manifests?limit=ten", "'ten'"),
        ("/manifests?limit=", "limit"),
        ("/manifests?cursor=nonsense", "cursor"),
        ("/manifests?cursor=" + "x" * 3000, "cursor"),
        ("/manifests?cursor=W10", "cursor"),
        ("/executions?cursor=WyJhIl0", "cursor"),
        ("/executions?cursor=Wzk5OTk5OTk5OTk5OTk5OTk5OTk5OV0", "cursor"),
        ("/manifests?sort=name", "the parameters are"),
        ("/manifests?limit=1&limit=2", "twice"),
        ("/manifests?enabled=perhaps", "enabled"),
        ("/manifests?kind=monthly", "kind"),
        ("/manifests?group=", "group"),
        ("/executions?state=sleeping", "state"),
        ("/executions?since=yesterday", "since"),
        ("/executions?since=2030-01-01T00:00:00", "since"),
        ("/executions?since=0001-01-01T00:00:00Z", "1970"),
        ("/executions/seven", "seven"),
        ("/executions/0", "execution_id"),
        ("/executions/99999999999999999999", "execution_id"),
        ("/timeline?start=2030-01-02T00:00:00Z&end=2030-01-01T00:00:00Z", "before end"),
        ("/graph?view=world", "view"),
        ("/overview?limit=0", "limit"),
        ("/servers?limit=1", "takes none"),
    ],
)
def test_a_wrong_parameter_is_named(one: Deployment, path: str, says: str) -> None:
    told = problem(one.read.get(path), 422)
    assert says in json.dumps(told)


def test_a_problem_is_told_whole(one: Deployment) -> None:
    missing = one.read.get("/groups/nothing")
    assert missing.json() == {
        "type": "urn:headway:problem:not-found",
        "title": "Not Found",
        "status": 404,
        "detail": missing.json()["detail"],
    }
    assert "no group is called 'nothing'" in missing.json()["detail"]
    assert missing.headers["cache-control"] == "no-store"
    assert "www-authenticate" not in missing.headers
    refused = one.nobody.get("/groups")
    assert refused.headers["www-authenticate"] == 'Bearer realm="headway"'
    assert refused.json()["title"] == "Unauthorized"
    limit = "field 'limit' = '-1': Input should be greater than or equal to 1; for example 50"
    wrong = one.read.get("/executions?limit=-1&state=odd&source=odd&since=odd")
    errors = wrong.json().pop("errors")
    assert wrong.json() == {
        "type": "urn:headway:problem:unprocessable-entity",
        "title": "Unprocessable Entity",
        "status": 422,
        "detail": "; ".join(one["detail"] for one in errors[:3]),
        "errors": errors,
    }
    assert errors[0] == {"field": "limit", "detail": limit}
    assert [one["field"] for one in errors] == ["limit", "state[0]", "source", "since"]


def test_of_many_wrong_fields_some_are_told(one: Deployment) -> None:
    wrong = [0] * 50
    told = problem(one.operate.post("/dead-letters/requeue", {"ids": wrong}), 422)
    fields = [found["field"] for found in told["errors"]]  # type: ignore[attr-defined]
    assert fields == [f"ids[{place}]" for place in range(20)]


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/overview?sort=name", "no such parameter; the parameters are limit"),
        ("/overview?limit=1&limit=2", "field 'limit' = '2': is given twice"),
        ("/servers?limit=1", "no such parameter; this address takes none"),
        ("/manifests?group=%0A", "field 'group' = "),
        ("/manifests?search=%0A", "field 'search' = "),
        ("/groups?search=%0A", "field 'search' = "),
        ("/workflows/%0A", "field 'name' = "),
        ("/executions?cursor=" + "x" * 3000, "field 'cursor' = "),
    ],
)
def test_a_parameter_says_what_it_may_be(one: Deployment, path: str, told: str) -> None:
    assert told in str(problem(one.read.get(path), 422)["detail"])


def test_a_change_without_a_tag_says_where_to_find_one(one: Deployment) -> None:
    missing = problem(one.operate.patch("/groups/loads", {"priority": 3}), 428)
    assert missing["detail"] == (
        "If-Match is missing: send the ETag that a GET of the same address has given"
    )
    odd = problem(one.operate.patch("/groups/loads", {"priority": 3}, if_match="odd"), 412)
    assert str(odd["detail"]).startswith("If-Match = 'odd': is no ETag of this; for example ")
    body = one.operate.ask("PATCH", "/groups/loads", b"", JSON | {"if-match": "odd"})
    assert problem(body, 422)["detail"] == "the body is missing; for example {}"


@pytest.mark.parametrize(
    "path",
    [
        "/manifests/nothing",
        "/manifests/nothing/why",
        "/manifests/nothing/executions",
        "/groups/nothing",
        "/executions/4711",
        "/executions/4711/why",
        "/executions/4711/events",
        "/queue/4711",
        "/queue/4711/why",
        "/dead-letters/4711",
        "/workflows/nothing",
        "/nothing",
        "/manifests/",
    ],
)
def test_what_is_not_there_is_not_found(one: Deployment, path: str) -> None:
    problem(one.read.get(path), 404)


@pytest.mark.parametrize(
    "body",
    [
        {"input": {"name": "users", "password": ["hunter2"]}},
        {"input": {"name": "users", "pasword": "hunter2"}},
        {"input": {"name": 7, "password": "hunter2"}},
        {"input": '{"name": "users", "password": "hunter2"}'},
        {"inputs": {"name": "users", "password": "hunter2"}},
        {"name": "users", "password": "hunter2"},
        [{"name": "users", "password": "hunter2"}],
        b'{"input": {"password": "hunter2"}',
        b'{"password": "hunter2", "password": "hunter2"}',
    ],
)
def test_a_refused_input_is_not_echoed_with_its_secrets(one: Deployment, body: object) -> None:
    answer = one.operate.post("/manifests/load-users/trigger", body)
    problem(answer, 422)
    assert "hunter2" not in answer.text


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"enabled": "yes"}, "enabled"),
        ({"max_active_jobs": 0}, "max_active_jobs"),
        ({"max_active_jobs": -1}, "max_active_jobs"),
        ({"max_active_jobs": 10**30}, "max_active_jobs"),
        ({"max_active_jobs": 2.5}, "max_active_jobs"),
        ({"priority": 99}, "priority"),
        ({"priority": True}, "priority"),
        ({"cap": 3}, "the fields are"),
        ({}, "nothing to change"),
        ([], "body"),
        ("text", "body"),
        (b"", "body"),
        (b"{", "not JSON"),
        (b"\xff\xfe", "UTF-8"),
        (b'{"priority": NaN}', "NaN"),
        (b'{"priority": 1, "priority": 2}', "two values"),
        (b"[" * 100_000, "nested"),
        (b'{"priority": ' + b"9" * 5000 + b"}", "JSON"),
    ],
)
def test_a_wrong_body_is_named(one: Deployment, body: object, says: str) -> None:
    tag = one.read.get("/groups/loads").headers["etag"]
    answer = one.operate.ask("PATCH", "/groups/loads", body, {**JSON, "if-match": tag})
    assert says in json.dumps(problem(answer, 422))
    assert one.read.get("/groups/loads").headers["etag"] == tag


@pytest.mark.parametrize(
    "tag", ["*", '"0.0123456789abcdef"', "nonsense", '"x"', 'W/"1.0123456789abcdef"', "é", ""]
)
def test_a_tag_of_something_else_changes_nothing(one: Deployment, tag: str) -> None:
    problem(one.operate.patch("/groups/loads", {"priority": 3}, if_match=tag), 412)


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]
)
def test_only_json_is_taken(one: Deployment, kind: str) -> None:
    answer = one.operate.ask("POST", "/queue", b"{}", {"content-type": kind})
    problem(answer, 415)


def test_a_bomb_is_not_unpacked(one: Deployment) -> None:
    bomb = gzip.compress(b"0" * 50_000_000)
    answer = one.operate.ask("POST", "/queue", bomb, {**JSON, "content-encoding": "gzip"})
    problem(answer, 415)


def test_a_huge_body_is_refused(one: Deployment) -> None:
    huge = b'{"workflow": "load", "input": "' + b"x" * 1_500_000 + b'"}'
    problem(one.operate.ask("POST", "/queue", huge, JSON), 413)
    large = {"workflow": "load", "input": {"name": "x" * 300_000}}
    assert "256000" in str(problem(one.operate.post("/queue", large), 422)["detail"])


def test_a_body_without_an_end_is_cut_off(one: Deployment) -> None:
    with socket.create_connection(("127.0.0.1", one.site.port), timeout=20) as line:
        line.sendall(
            b"POST /api/v1/queue HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer operate\r\n"
            b"content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        piece = b"10000\r\n" + b" " * 65536 + b"\r\n"
        try:
            for _ in range(100):
                line.sendall(piece)
        except OSError:
            pass  # it has hung up, as it should
        line.settimeout(10)
        assert b" 413 " in line.recv(64)


def test_a_wrong_verb_is_refused_on_every_address(one: Deployment) -> None:
    allowed: dict[str, set[str]] = {}
    for route in routes():
        allowed.setdefault(route.path_format, set()).update(route.methods or ())
    for path, methods in allowed.items():
        for method in {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} - methods:
            problem(one.admin.ask(method, filled_in(path)), 405)


def routes() -> list[ScopedRoute]:
    return [route for router in api.ROUTERS for route in router.declared()]


def filled_in(path: str, name: str = "off", number: str = "7") -> str:
    for word in ("{external_id}", "{name}"):
        path = path.replace(word, name)
    for word in ("{execution_id}", "{entry_id}", "{letter_id}", "{token_id}"):
        path = path.replace(word, number)
    return path


@pytest.mark.parametrize("levels", [33, 60, 100, 500, 700, 900])
def test_json_nested_hundreds_deep_is_refused(
    one: Deployment, caplog: pytest.LogCaptureFixture, levels: int
) -> None:
    for deep in ("[" * levels + "]" * levels, '{"a":' * levels + "1" + "}" * levels):
        for path, body in (
            ("/queue", '{"workflow":"load","input":{"name":%s}}'),
            ("/queue", '{"workflow":"load","input":%s}'),
            ("/queue", '{"workflow":%s}'),
            ("/manifests/off/cancel", '{"reason":%s}'),
            ("/manifests/off/trigger", "%s"),
        ):
            answer = one.operate.post(path, (body % deep).encode())
            told = problem(answer, 422)
            assert len(answer.body) < 2000, told
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize("number", [str(2**63), "9" * 19, "9" * 30, "9" * 5000])
def test_a_number_that_is_the_id_of_no_row_is_not_found(
    deployment: Deployment, number: str
) -> None:
    pages = Api(deployment.site, "admin", prefix="")
    for path in ("/executions/{}", "/executions/{}/rerun", "/dead-letters/{}", "/queue/{}"):
        assert pages.get(path.format(number)).status == 404, path
    for path in ("/executions/{}", "/dead-letters/{}", "/queue/{}"):
        assert deployment.admin.get(path.format(number)).status in (404, 422), path


@pytest.mark.parametrize("told", [b"[" * 5000, b'["ok","\\ud800\\u0000"]', b"[[],1]", b"{}"])
def test_a_forged_message_of_the_last_page_does_no_harm(one: Deployment, told: bytes) -> None:
    cookie = f"headway-told={base64.urlsafe_b64encode(told).decode()}"
    assert Api(one.site, "read", prefix="").get("/groups", cookie=cookie).status == 200


def test_hostile_text_in_every_parameter_does_no_harm(deployment: Deployment) -> None:
    before = deployment.read.get("/manifests").body
    for route in routes():
        if "GET" not in (route.methods or ()) or route.path.endswith("/events"):
            continue
        assert isinstance(route, ApiRoute)
        for text in HOSTILE:
            written = "".join(f"%{byte:02X}" for byte in text.encode())
            filled = filled_in(route.path_format, written, written)
            paths = [filled] if filled != route.path_format else []
            paths += [f"{filled_in(route.path_format)}?{name}={written}" for name in route.known]
            for path in paths:
                answer = deployment.admin.get(path)
                assert answer.status in (200, 404, 422), (path, answer.status, answer.text)
    assert deployment.read.get("/manifests").body == before


def test_hostile_text_in_every_body_is_refused_or_kept_as_text(deployment: Deployment) -> None:
    for text in HOSTILE:
        for path, body in (
            ("/queue", {"workflow": text}),
            ("/manifests/off/cancel", {"reason": text}),
            ("/dead-letters/acknowledge", {"ids": [77], "note": text}),
            ("/dead-letters/requeue", {"all": True, "group": text}),
            ("/manifests/off/trigger", {"input": {"name": text}}),
        ):
            answer = deployment.operate.post(path, body)
            assert answer.status in (200, 202, 422), (path, text, answer.text)
    assert deployment.read.get("/manifests/off").status == 200
