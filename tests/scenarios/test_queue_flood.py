"""One token floods its group until it is refused; other groups start what they are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from headway import Group
from headway.dispatcher.cycle import DispatchResult
from headway.web.app import build_app
from headway.web.security.access import Access
from headway.web.security.pace import Pace
from tests.builders import Scene
from tests.web.api.deployment import Api, FixedTokens
from tests.web.site import listening

MOST = 30
CAP, SLOTS = 2, 3
UNHURRIED = Pace(at_once=100_000, per_second=1000)


@dataclass
class Deployed:
    """A deployment, and two programs with a token each."""

    scene: Scene
    flooding: Api
    other: Api

    def flood(self) -> list[int]:
        """Trigger until there was no place for any of the group's manifests; what was answered."""
        answers: list[int] = []
        while answers[-3:] != [429] * 3 and len(answers) < 2 * MOST:
            path = f"/manifests/flooded-{len(answers) % 3}/trigger"
            answers.append(self.flooding.post(path).status)
        return answers

    def groups_of(self, result: DispatchResult) -> list[str]:
        """The group of everything that was dispatched."""
        admitted = {one.entry.id: one.entry.group_name for one in result.admissions}
        assert len(result.dispatched) <= SLOTS
        found = [self.scene.execution(execution).entry_id for execution in result.dispatched]
        return sorted(str(admitted[entry]) for entry in found)


@pytest.fixture
def deployed(database_url: str) -> Iterator[Deployed]:
    with Scene(database_url, max_active_jobs=SLOTS, max_queued_per_group=MOST) as scene:
        flooded = Group("flooded", max_active_jobs=CAP, priority=31)  # ahead of all others
        for number in range(3):
            scene.app.schedule("work", f"flooded-{number}", group=flooded)
        scene.app.schedule("work", "quiet", group="quiet")
        scene.apply()
        access = Access(tokens=FixedTokens(), writes=UNHURRIED)
        with listening(build_app(scene.app, scene.store, access)) as site:
            yield Deployed(scene, Api(site, "operate"), Api(site, "admin"))
        scene.app.runtime.store.close()


def test_who_floods_is_refused_and_no_other_group_waits_behind_it(deployed: Deployed) -> None:
    answers = deployed.flood()
    assert answers == [202] * MOST + [429] * 3
    for _ in range(5):
        assert deployed.other.post("/manifests/quiet/trigger").status == 202
        # In the very next pass: beside the flood, which has its group's slots and no more.
        dispatched = deployed.groups_of(deployed.scene.dispatch())
        assert dispatched == ["flooded"] * CAP + ["quiet"]
        deployed.scene.run()
        assert deployed.flood()[-1] == 429  # full again, whatever has run
    waiting = [entry.group_name for entry in deployed.scene.history.queue.page(limit=100).items]
    assert waiting == ["flooded"] * MOST


def test_it_is_as_it_is_without_the_flood(deployed: Deployed) -> None:
    for _ in range(5):
        assert deployed.other.post("/manifests/quiet/trigger").status == 202
        assert deployed.groups_of(deployed.scene.dispatch()) == ["quiet"]
        deployed.scene.run()
