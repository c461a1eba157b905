"""Everything that can be read, on both databases: whole, without secrets, in pages, tagged."""

from __future__ import annotations

import json

import headway
from headway.domain.masking import MASK
from headway.domain.work_queue import NewEntry, Source
from headway.web import api
from tests.web.api.deployment import SECRET, Api, Deployment, named

ODD = named("odd/name 100%")

READABLE = [
    "/overview",
    "/overview?limit=1",
    "/throughput?span=week",
    "/manifests",
    "/manifests?search=load&anywhere=true&enabled=true&group=loads&workflow=load",
    "/manifests?dead_lettered=true&kind=interval",
    f"/manifests/{ODD}",
    f"/manifests/{ODD}/why",
    "/manifests/extract-users/executions",
    "/manifests/extract-users/next-runs",
    f"/manifests/{ODD}/input-schema",
    "/groups",
    "/groups?search=lo&enabled=true",
    "/groups/loads",
    f"/groups/{named('odd/group')}",
    "/graph",
    "/graph?view=manifests&around=load-users",
    "/executions",
    "/executions?state=failed&state=completed&source=schedule&group=broken&since=2020-01-01T00:00:00Z",
    "/timeline",
    "/timeline?start=2020-01-01T00:00:00Z&end=2199-01-01T00:00:00Z&group=loads&limit=3",
    "/executions/1",
    "/executions/2",
    "/executions/1/why",
    "/queue",
    "/queue?source=trigger",
    "/dead-letters",
    "/dead-letters?status=awaiting_intervention&group=broken&workflow=load",
    "/dead-letters/1",
    "/workflows",
    "/workflows/load",
    "/servers",
    "/settings",
    "/openapi.json",
]


def test_every_address_answers_and_none_tells_a_secret(deployment: Deployment) -> None:
    entries = deployment.read.get("/queue").json()["items"]
    of_entry = [f"/queue/{entries[0]['id']}", f"/queue/{entries[0]['id']}/why"]
    for path in [*READABLE, *of_entry]:
        answer = deployment.read.get(path)
        assert answer.status == 200, (path, answer.text)
        assert answer.headers["content-type"] == "application/json", path
        assert SECRET not in answer.text, path
    assert deployment.admin.get("/audit").status == 200
    assert deployment.admin.get("/tokens").status == 200


def test_no_address_that_reads_is_left_out() -> None:
    tried = {path.partition("?")[0] for path in READABLE} | {
        "/audit",
        "/tokens",
        "/queue/7",
        "/queue/7/why",
    }
    declared = {
        route.path_format: route.path_regex
        for router in api.ROUTERS
        for route in router.declared()
        # The federation's have tests of their own.
        if "GET" in (route.methods or ()) and not route.path.startswith("/azolla")
    }
    missing = [
        path
        for path, pattern in declared.items()
        if not any(pattern.match(one.replace("%2F", "\x1f")) for one in tried)
    ]
    assert sorted(missing) == ["/events", "/executions/{execution_id}/events"]


def first_of(read: Api, state: str) -> int:
    return int(read.get(f"/executions?state={state}").json()["items"][0]["id"])


def test_details_tell_what_happened(deployment: Deployment) -> None:
    read = deployment.read
    failed = read.get(f"/executions/{first_of(read, 'failed')}").json()
    assert failed["failure"]["type"] == "ValueError"
    assert "Traceback" in failed["failure"]["traceback"]
    assert failed["input"] == {"name": "bad", "partition": 0, "password": MASK}
    done = read.get(f"/executions/{first_of(read, 'completed')}").json()
    assert done["output"] == {"rows": 3}
    assert done["attempts"][0]["id"] == done["id"]
    letter = read.get("/dead-letters/1").json()
    assert letter["input"]["password"] == MASK
    assert [run["state"] for run in letter["executions"]] == ["failed"]
    group = read.get("/groups/loads").json()
    assert [run["external_id"] for run in group["holders"]] == ["extract-users"]
    manifest = read.get("/manifests/load-users").json()
    assert [edge["external_id"] for edge in manifest["parents"]] == ["extract-users"]
    assert manifest["definition"]["input"]["password"] == MASK
    why = read.get("/manifests/off/why").json()
    assert "disabled" in why["answer"]
    assert any(not gate["passed"] for gate in why["gates"])


def test_a_list_is_read_page_by_page(deployment: Deployment) -> None:
    found, path = [], "/manifests?limit=2&enabled=true"
    while True:
        answer = deployment.read.get(path)
        page = answer.json()
        found += [one["external_id"] for one in page["items"]]
        assert len(page["items"]) <= 2
        if page["next"] is None:
            assert "link" not in answer.headers
            break
        target, _, relation = answer.headers["link"].partition("; ")
        assert relation == 'rel="next"'
        path = "/manifests" + target.strip("<>")
    whole = deployment.read.get("/manifests?enabled=true").json()["items"]
    assert found == [one["external_id"] for one in whole]
    assert len(found) == 6


def test_what_somebody_has_already_is_not_sent_again(deployment: Deployment) -> None:
    for path in ("/manifests", "/groups/loads", "/executions/1"):
        first = deployment.read.get(path)
        again = deployment.read.get(path, if_none_match=first.headers["etag"])
        assert (again.status, again.body) == (304, b""), path
        assert again.headers["etag"] == first.headers["etag"]
        for answer in (first, again):
            assert answer.headers["cache-control"] == "private, no-cache"
        assert "content-type" not in again.headers
        several = f'"0123456789abcdef", W/{first.headers["etag"]}'
        assert deployment.read.get(path, if_none_match=several).status == 304
        assert deployment.read.get(path, if_none_match="*").status == 304
        other = deployment.read.get(path, if_none_match='"0123456789abcdef"')
        assert (other.status, other.body) == (200, first.body)
    before = deployment.read.get("/queue").headers["etag"]
    deployment.scene.app.trigger("extract-users")
    assert deployment.read.get("/queue", if_none_match=before).status == 200


def test_a_page_of_what_was_stored_oddly_is_still_json(deployment: Deployment) -> None:
    app = deployment.scene.app

    @app.workflow
    def odd(value: dict[str, str]) -> None: ...

    # Earlier versions stored such text; InputType.encode refuses it.
    text = r'{"key":"\ud800\u0000</script>"}'
    [entry] = deployment.scene.enqueue(NewEntry("odd", Source.AD_HOC, input=text))
    answer = deployment.read.get(f"/queue/{entry}")
    assert answer.status == 200
    assert json.loads(answer.body)["input"] == {"key": "\ud800\x00</script>"}


def test_the_document_says_what_each_route_needs(deployment: Deployment) -> None:
    told = deployment.read.get("/openapi.json").json()
    assert told["info"]["title"] == "headway"
    assert told["info"]["version"] == headway.__version__
    assert told["servers"] == [{"url": "/api/v1"}]
    assert told["components"]["securitySchemes"].keys() == {"token", "session"}
    assert {"Problem", "FieldProblem"} <= told["components"]["schemas"].keys()
    group = told["paths"]["/groups/{name}"]
    for method, scope in (("get", "read"), ("patch", "operate")):
        assert group[method]["security"] == [{"token": []}, {"session": []}]
        assert group[method]["description"].endswith(f"\n\nScope: {scope}")
    assert group["get"]["responses"]["200"]["headers"].keys() == {"ETag"}
    assert [one["name"] for one in group["get"]["parameters"]] == ["name"]
    taken = [one["name"] for one in group["patch"]["parameters"]]
    assert taken == ["name", "if-match", "Idempotency-Key"]
    assert {"409", "412", "415", "428"} <= group["patch"]["responses"].keys()
    assert "304" in group["get"]["responses"] and "304" not in group["patch"]["responses"]
    trigger = told["paths"]["/manifests/{external_id}/trigger"]["post"]
    assert {"202", "404", "408", "409", "415"} <= trigger["responses"].keys()
    assert "404" not in told["paths"]["/queue"]["post"]["responses"]
    assert "/openapi.json" not in told["paths"]
    events = told["paths"]["/events"]["get"]["responses"]["200"]
    assert events["content"].keys() == {"text/event-stream"}


def test_nobody_and_whoever_has_too_little_scope_is_refused(deployment: Deployment) -> None:
    for router in api.ROUTERS:
        for route in router.declared():
            path = route.path_format.replace("{external_id}", "off").replace("{name}", "loads")
            path = path.replace("{execution_id}", "1").replace("{entry_id}", "1")
            path = path.replace("{letter_id}", "1").replace("{token_id}", "1")
            [method] = route.methods or {"GET"}
            body: dict[str, object] | None = {} if method != "GET" else None
            for token in (None, "expired"):
                answer = Api(deployment.site, token).ask(method, path, body)
                assert answer.status == 401, (path, token)
                assert answer.headers["content-type"] == "application/problem+json"
                assert answer.json()["status"] == 401
            weaker = {"operate": "read", "admin": "operate"}.get(str(route.scope))
            if weaker is not None:
                answer = Api(deployment.site, weaker).ask(method, path, body)
                assert answer.status == 403, (path, weaker)
                assert str(route.scope) in answer.json()["detail"]
