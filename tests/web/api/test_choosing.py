"""What each parameter of a list chooses."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.web.api.deployment import Deployment, deployed, named

ODD = "odd/name 100%"
GROUP_OF_ODD = named("odd/group")


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """One deployment for all that only read."""
    with deployed(f"sqlite:///{tmp_path_factory.mktemp('lists') / 'headway.db'}") as made:
        yield made


def chosen(one: Deployment, path: str, key: str) -> list[object]:
    answer = one.admin.get(path)
    assert answer.status == 200, answer.text
    return [item[key] for item in answer.json()["items"]]


BROKEN = ["broken-1", "broken-2", "broken-3"]
LOADS = ["extract-users", "load-users"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", [*BROKEN, *LOADS, ODD, "off"]),
        ("search=load", ["load-users"]),
        ("search=users", []),
        ("search=users&anywhere=true", LOADS),
        ("group=loads", LOADS),
        ("workflow=load&limit=1", ["broken-1"]),
        ("workflow=work", []),
        ("enabled=true&search=o", [ODD]),
        ("enabled=false", ["off"]),
        ("kind=interval", [*BROKEN, "extract-users", "off"]),
        ("kind=dependent", ["load-users"]),
        ("kind=none", [ODD]),
        ("kind=cron", []),
        ("dead_lettered=true", BROKEN),
        ("dead_lettered=false&search=broken", BROKEN),
    ],
)
def test_manifests_are_chosen(one: Deployment, query: str, found: list[str]) -> None:
    assert chosen(one, f"/manifests?{query}", "external_id") == found


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["broken", "loads", "odd/group", "resting"]),
        ("search=o", ["odd/group"]),
        ("search=o&anywhere=true", ["broken", "loads", "odd/group"]),
        ("enabled=false", []),
        ("enabled=true&limit=1", ["broken"]),
    ],
)
def test_groups_are_chosen(one: Deployment, query: str, found: list[str]) -> None:
    assert chosen(one, f"/groups?{query}", "name") == found


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", [6, 5, 4, 3, 2, 1]),
        ("state=completed", [5, 1]),
        ("state=completed&state=in_progress", [6, 5, 1]),
        ("state=pending", []),
        ("manifest=extract-users", [6, 1]),
        ("group=broken", [4, 3, 2]),
        ("workflow=load&limit=2", [6, 5]),
        ("workflow=work", []),
        ("source=trigger", [6]),
        ("source=dependent", [5]),
        ("since=2199-01-01T00:00:00Z", []),
        ("since=2020-01-01T00:00:00Z&group=loads", [6, 5, 1]),
        ("until=2020-01-01T00:00:00Z", []),
        ("until=2199-01-01T00:00:00Z&group=loads", [6, 5, 1]),
    ],
)
def test_executions_are_chosen(one: Deployment, query: str, found: list[int]) -> None:
    assert chosen(one, f"/executions?{query}", "id") == found


def test_executions_are_chosen_between_two_moments(one: Deployment) -> None:
    moment = one.read.get("/executions/5").json()["dispatched_at"]
    assert chosen(one, f"/executions?since={moment}", "id") == [6, 5]
    assert chosen(one, f"/executions?until={moment}", "id") == [4, 3, 2, 1]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", [7, 8]),
        ("limit=1", [7]),
        (f"group={GROUP_OF_ODD}", [7]),
        ("group=loads", []),
        ("source=ad_hoc", [8]),
        ("source=trigger", [7]),
        (f"manifest={named(ODD)}", [7]),
        ("manifest=off", []),
    ],
)
def test_entries_are_chosen(one: Deployment, query: str, found: list[int]) -> None:
    assert chosen(one, f"/queue?{query}", "id") == found


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", [3, 2, 1]),
        ("limit=2", [3, 2]),
        ("status=awaiting_intervention", [3, 2, 1]),
        ("status=retried", []),
        ("group=broken", [3, 2, 1]),
        ("group=loads", []),
        ("workflow=load", [3, 2, 1]),
        ("workflow=work", []),
    ],
)
def test_dead_letters_are_chosen(one: Deployment, query: str, found: list[int]) -> None:
    assert chosen(one, f"/dead-letters?{query}", "id") == found


def test_the_audit_is_chosen(deployment: Deployment) -> None:
    deployment.operate.post("/manifests/off/trigger")
    deployment.admin.post("/manifests/off/trigger")
    deployment.operate.post("/manifests/load-users/cancel")
    moment = deployment.admin.get("/audit").json()["items"][0]["at"]
    for query, found in (
        ("", [3, 2, 1]),
        ("limit=1", [3]),
        ("actor=admin", [2]),
        ("action=manifest.trigger", [2, 1]),
        ("subject=load-users", [3]),
        ("since=2199-01-01T00:00:00Z", []),
        (f"since={moment}", [3]),
    ):
        assert chosen(deployment, f"/audit?{query}", "id") == found, query


@pytest.mark.parametrize("path", ["/executions", "/queue", "/dead-letters", "/groups"])
def test_every_list_goes_on_where_its_page_ended(one: Deployment, path: str) -> None:
    key = "name" if path == "/groups" else "id"
    whole = chosen(one, path, key)
    first = one.read.get(f"{path}?limit=1").json()
    assert chosen(one, f"{path}?cursor={first['next']}", key) == whole[1:]


def test_the_runs_of_a_manifest_come_in_pages(one: Deployment) -> None:
    path = "/manifests/extract-users/executions"
    first = one.read.get(f"{path}?limit=1")
    assert [run["id"] for run in first.json()["items"]] == [6]
    target = first.headers["link"].partition("; ")[0].strip("<>")
    assert chosen(one, path + target, "id") == [1]


@pytest.mark.parametrize(
    ("moment", "status"),
    [
        ("1970-01-01T00:00:00Z", 200),
        ("1969-12-31T23:59:59Z", 422),
        ("2200-01-01T00:00:00Z", 200),
        ("2200-01-01T00:00:01Z", 422),
    ],
)
def test_moments_lie_within_reason(one: Deployment, moment: str, status: int) -> None:
    answer = one.read.get(f"/executions?since={moment}")
    assert answer.status == status
    assert status == 200 or "must lie between 1970 and 2200" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("path", "most"),
    [
        ("/manifests?limit={}", 200),
        ("/overview?limit={}", 100),
        ("/timeline?limit={}", 1000),
        ("/graph?limit={}", 500),
    ],
)
def test_a_list_has_a_greatest_length(one: Deployment, path: str, most: int) -> None:
    assert one.read.get(path.format(most)).status == 200
    assert one.read.get(path.format(most + 1)).status == 422
    assert one.read.get(path.format(1)).status == 200
    assert one.read.get(path.format(0)).status == 422
