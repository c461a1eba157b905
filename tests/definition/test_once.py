"""Requests with a key: done once, whoever sends them how often, and answered the same."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from sqlalchemy import func, select

from headway.definition.operating import Operator
from headway.definition.runtime import Runtime
from headway.domain.idempotency import Answer, checked_key, request_digest
from headway.errors import DefinitionError, KeyReused, ManifestNotFound
from headway.history import Retention
from headway.store.engine import Store
from headway.store.tables import idempotency, work_queue
from tests.builders import Scene
from tests.databases import database_url, postgres_url, sqlite_url
from tests.operations import noted
from tests.runtime_verbs import runtime_of

__all__ = ["database_url", "postgres_url", "sqlite_url"]

DIGEST, OTHER = request_digest("POST", "/x", b"{}"), request_digest("POST", "/x", b"[]")


@pytest.fixture
def scene(database_url: str) -> Iterator[Scene]:
    with Scene(database_url) as scene:
        scene.app.schedule("work", "load")
        scene.apply()
        yield scene


@pytest.fixture
def alice(scene: Scene) -> Operator:
    return Operator("alice", runtime_of(scene))


def ask(operator: Operator, key: str = "key-1", digest: str = DIGEST) -> Answer:
    with operator.once(key, digest) as once:
        if once.answer is None:
            entry = once.operator.trigger("load")
            once.answer = Answer(202, f"entry {entry}", {"location": f"/queue/{entry}"})
        return once.answer


def queued(scene: Scene) -> int:
    with scene.store.reading() as tx:
        return tx.connection.execute(select(func.count()).select_from(work_queue)).scalar_one()


def kept(scene: Scene) -> int:
    with scene.store.reading() as tx:
        return tx.connection.execute(select(func.count()).select_from(idempotency)).scalar_one()


def test_the_same_request_is_answered_the_same_and_done_once(scene: Scene, alice: Operator) -> None:
    first = ask(alice)
    assert [ask(alice) for _ in range(3)] == [first] * 3
    assert (queued(scene), len(noted(scene))) == (1, 1)
    assert ask(alice, "key-2") != first


def test_a_key_belongs_to_whoever_made_it_up(scene: Scene, alice: Operator) -> None:
    assert ask(alice) != ask(Operator("bob", runtime_of(scene)))
    assert queued(scene) == 2


def test_another_request_with_the_same_key_is_refused(scene: Scene, alice: Operator) -> None:
    ask(alice)
    with pytest.raises(KeyReused, match="'key-1' was used for another request"):
        ask(alice, digest=OTHER)
    assert queued(scene) == 1


def test_what_fails_may_be_tried_again(scene: Scene, alice: Operator) -> None:
    with pytest.raises(ManifestNotFound), alice.once("key-1", DIGEST) as once:
        once.operator.trigger("load")
        once.operator.trigger("nothing")
    assert (queued(scene), kept(scene), noted(scene)) == (0, 0, [])
    with alice.once("key-1", DIGEST) as once:
        assert once.answer is None
    assert kept(scene) == 0, "no answer was given"
    assert ask(alice).status == 202


def test_after_a_day_a_key_is_new_again(scene: Scene, alice: Operator) -> None:
    first = ask(alice)
    scene.clock.advance(hours=24)
    assert ask(alice) == first
    scene.clock.advance(seconds=1)
    assert ask(alice, digest=OTHER) != first


def test_retention_forgets_answers_after_a_day(scene: Scene, alice: Operator) -> None:
    ask(alice)
    scene.clock.advance(hours=25)
    ask(alice, "key-2")
    retention = Retention(scene.store, scene.app.settings, scene.app.observer)
    assert sum(retention.run_once().answers for _ in range(2)) == 1
    assert kept(scene) == 1


@pytest.mark.parametrize("fails_first", [False, True], ids=["commits", "fails"])
def test_of_many_who_send_it_at_once_one_does_it(scene: Scene, fails_first: bool) -> None:
    """The first is held inside its transaction until all others have been sent."""
    inside, go_on = threading.Event(), threading.Event()
    done: list[int] = []

    def first() -> Answer | None:
        with closing(Store(scene.url)) as store:
            someone = Operator("alice", Runtime("tests", scene.app.registry, store))
            try:
                with someone.once("key-1", DIGEST) as once:
                    entry = once.operator.trigger("load")
                    once.answer = Answer(202, f"entry {entry}", {"location": f"/queue/{entry}"})
                    inside.set()
                    assert go_on.wait(30)
                    if fails_first:
                        raise ManifestNotFound("load")
                    done.append(entry)
                    return once.answer
            except ManifestNotFound:
                return None

    def later(_: int) -> Answer:
        with closing(Store(scene.url)) as store:
            someone = Operator("alice", Runtime("tests", scene.app.registry, store))
            inside.wait(30)
            sent.release()
            return ask(someone)

    sent = threading.Semaphore(0)
    with ThreadPoolExecutor(8) as people:
        leading = people.submit(first)
        following = [people.submit(later, number) for number in range(7)]
        for _ in following:
            assert sent.acquire(timeout=30)
        go_on.set()
        answers = {str(one.result(60)) for one in following}
    assert len(answers) == 1
    if not fails_first:
        assert answers == {str(leading.result())} and len(done) == 1
    assert (queued(scene), len(noted(scene))) == (1, 1)


@pytest.mark.parametrize("key", ["", "a b", "x" * 256, "ü", "a\n", None, 7])
def test_a_key_is_short_plain_text(key: object) -> None:
    with pytest.raises(DefinitionError, match="idempotency key = "):
        checked_key(key)


def test_every_part_of_a_request_tells_it_from_others() -> None:
    digests = {
        request_digest(*parts)
        for parts in [
            ("POST", "/a", b"b"),
            ("PUT", "/a", b"b"),
            ("POST", "/ab", b""),
            ("P", "OST/a", b"b"),
        ]
    }
    assert len(digests) == 4
