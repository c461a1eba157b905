"""One sender cannot bury the others under what it queues."""

from __future__ import annotations

from pathlib import Path

from headway.web.security.pace import Pace
from tests.web.api.deployment import Api, Deployment, deployed, named

ODD = named("odd/name 100%")


def test_a_group_in_which_much_waits_takes_no_more_and_others_do(deployment: Deployment) -> None:
    deployment.scene.configure(max_queued_per_group=3)
    operate = deployment.operate
    done = Api(deployment.site, "read").get("/executions?state=completed").json()["items"][0]["id"]
    for _ in range(2):
        assert operate.post(f"/manifests/{ODD}/trigger").status == 202
    for path in (f"/manifests/{ODD}/trigger", f"/groups/{named('odd/group')}/trigger"):
        refused = operate.post(path)
        assert refused.status == 429, path
        assert int(refused.headers["retry-after"]) > 0
        assert "3 entries wait already in" in refused.json()["detail"]
    assert operate.post("/manifests/extract-users/trigger").status == 202
    assert operate.post(f"/executions/{done}/rerun").status == 202


def test_what_waits_for_later_counts_too(deployment: Deployment) -> None:
    deployment.scene.configure(max_queued_per_group=2)
    later = {"delay_seconds": 3600}
    found = [deployment.operate.post("/manifests/off/trigger", later).status for _ in range(3)]
    assert found == [202, 202, 429]


def test_what_belongs_to_no_manifest_is_bounded_too(deployment: Deployment) -> None:
    deployment.scene.configure(max_queued_per_group=2)
    body = {"workflow": "load", "input": {"name": "x"}}
    found = [deployment.operate.post("/queue", body).status for _ in range(2)]
    assert found == [202, 429]


def test_who_writes_too_fast_waits_and_others_do_not(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'headway.db'}"
    with deployed(url, writes=Pace(at_once=3, per_second=0.001)) as deployment:
        found = [deployment.operate.post("/manifests/off/trigger").status for _ in range(4)]
        assert found == [202, 202, 202, 429]
        assert deployment.operate.get("/groups").status == 200
        assert deployment.admin.post("/manifests/off/trigger").status == 202
