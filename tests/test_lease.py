"""The keeper of a lease: beats, being late, being dead and coming back."""

import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from sqlalchemy.exc import OperationalError

from headway import lease
from headway.domain import lease_time
from headway.domain.lease_time import LeaseTime
from headway.domain.routing import Routing
from headway.errors import DatabaseUnavailable
from headway.lease import ON_POSTGRESQL, ON_SQLITE, LeaseKeeper, lease_of, this_process
from headway.observe import Observer
from headway.store import leases
from headway.store.engine import Store
from headway.store.migrate import migrate
from headway.store.servers import ServerProcess
from headway.store.tables import server
from headway.store.transaction import Transaction
from tests.builders import Recorder
from tests.store.factories import rows_of

LEASE = timedelta(seconds=3)


class Kept:
    """A keeper on a real store, what it told, and what it was asked to give up."""

    def __init__(self, url: str) -> None:
        self.store = Store(url, durable=False)
        migrate(self.store)
        observer = Observer()
        self.events = Recorder(observer)
        self.given_up: list[str] = []
        self.time_left = LeaseTime()
        self.on_lost: Callable[[str], object] = lambda own_id: None
        self.keeper = LeaseKeeper(
            self.store,
            LEASE,
            observer,
            lambda own_id: this_process(own_id, ["worker"], ["work"], 2, Routing()),
            running=lambda: ["load-users"],
            on_lost=self._give_up,
            on_cut_off=self._stop_exclusive,
            time_left=self.time_left,
        )
        self.exclusive = [7]

    def _give_up(self, own_id: str) -> None:
        self.given_up.append(own_id)
        self.on_lost(own_id)

    def _stop_exclusive(self) -> list[int]:
        stopped, self.exclusive = self.exclusive, []
        return stopped

    def ids(self) -> list[str]:
        return [row["id"] for row in rows_of(self.store, server)]

    def forget(self) -> None:
        with self.store.writing() as tx:
            tx.connection.execute(server.delete())


@pytest.fixture
def kept(database_url: str) -> Iterator[Kept]:
    kept = Kept(database_url)
    yield kept
    kept.keeper.stop()
    kept.store.close()


def passes(keeper: LeaseKeeper, seconds: float) -> None:
    """As if the last beat were so long ago."""
    keeper._last = time.monotonic() - seconds


def test_a_process_has_a_row_while_it_lives(kept: Kept) -> None:
    kept.keeper.start()
    assert kept.ids() == [kept.keeper.id]
    kept.keeper.stop()
    assert kept.ids() == []


def threads() -> set[str]:
    return {one.name for one in threading.enumerate()} & {"headway-beat", "headway-contact"}


def test_a_process_looks_at_its_contact_until_it_stops(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "renew", break_down)
    kept.keeper.start()
    passes(kept.keeper, 2.5)
    kept.events.wait_for("server.cut_off")
    assert threads() == {"headway-beat", "headway-contact"}
    kept.keeper.stop()
    assert threads() == set()


def test_whoever_registers_again_after_a_lost_answer_has_one_row(kept: Kept) -> None:
    kept.keeper.register()
    kept.keeper.register()
    assert kept.ids() == [kept.keeper.id]


def test_a_stop_leaves_once(kept: Kept) -> None:
    """Stopped again, it would open the database once more."""
    kept.keeper.register()
    kept.keeper.stop()
    with kept.store.writing() as tx:
        row = this_process(kept.keeper.id, ["worker"], ["work"], 2, Routing())
        leases.register(tx, row, LEASE)
    kept.keeper.stop()
    assert kept.ids() == [kept.keeper.id]


def test_whoever_cannot_leave_stops_all_the_same(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its row expires by itself."""
    for error in (OperationalError("DELETE", {}, Exception("gone")), DatabaseUnavailable("lost")):
        kept.keeper.register()

        def fail(*arguments: object, error: Exception = error) -> None:
            raise error

        with monkeypatch.context() as broken:
            broken.setattr(leases, "leave", fail)
            kept.keeper.stop()
    assert len(kept.events.named("loop.failed", loop="beat")) == 2


class NotedStore(Store):
    """A store that is its own connection apart, and notes that it was closed."""

    closed = 0

    def apart(self) -> Store:
        return self

    def close(self) -> None:
        self.closed += 1
        super().close()


def test_whoever_cannot_register_at_its_start_closes_its_connection(sqlite_url: str) -> None:
    store = NotedStore(sqlite_url, durable=False)

    def present(own_id: str) -> ServerProcess:
        return this_process(own_id, ["worker"], ["work"], 2, Routing())

    keeper = LeaseKeeper(store, LEASE, Observer(), present, list, lambda own_id: None)

    def give_up(work: Callable[[], object]) -> object:
        raise DatabaseUnavailable("away")

    with pytest.raises(DatabaseUnavailable):
        keeper.start(give_up)  # type: ignore[arg-type]
    assert store.closed == 1
    assert threads() == set()


def test_a_process_presents_itself_with_all_that_others_go_by() -> None:
    routing = Routing(default="gpu")
    assert this_process("me", ["worker"], ["work"], 2, routing) == ServerProcess(
        "me", socket.gethostname(), os.getpid(), ["worker"], ["work"], 2, routing
    )


@pytest.fixture
def switch_interval() -> Iterator[float]:
    before = sys.getswitchinterval()
    yield before
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("switch_interval")
@pytest.mark.parametrize(("of_python", "with_a_lease"), [(0.005, 0.0005), (0.0001, 0.0001)])
def test_threads_switch_sooner_in_a_process_with_a_lease(
    kept: Kept, of_python: float, with_a_lease: float
) -> None:
    """A job that computes and asks for a file every millisecond starves a beat otherwise."""
    sys.setswitchinterval(of_python)
    kept.keeper.start()
    assert sys.getswitchinterval() == pytest.approx(with_a_lease, abs=2e-6)  # Python rounds it


@pytest.mark.story(37)
def test_a_beat_renews_at_least_four_times_a_lease(kept: Kept) -> None:
    kept.keeper.register()
    [before] = rows_of(kept.store, server)
    renewed_at = kept.keeper.renewed_at
    assert kept.keeper.beat() <= LEASE.total_seconds() / 4
    [after] = rows_of(kept.store, server)
    assert after["expires_at"] > before["expires_at"]
    assert kept.keeper.renewed_at > renewed_at
    assert kept.events.events == []


def test_a_late_beat_is_told_with_the_jobs_that_run(kept: Kept) -> None:
    kept.keeper.register()
    passes(kept.keeper, 1.2)
    kept.keeper.beat()
    [late] = kept.events.named("server.late")
    assert late.fields["owner"] == kept.keeper.id
    assert late.fields["jobs"] == ["load-users"]
    assert 1.2 <= late.fields["seconds"] < 30


@pytest.mark.story(11)
def test_whoever_is_buried_gives_everything_up_and_comes_back_as_another(kept: Kept) -> None:
    kept.keeper.register()
    dead = kept.keeper.id
    kept.forget()
    kept.keeper.beat()

    assert kept.keeper.id != dead
    assert kept.given_up == [kept.keeper.id]
    assert kept.ids() == [kept.keeper.id]
    [told] = kept.events.wait_for("server.dead")
    assert told.fields == {"owner": dead, "again": kept.keeper.id, "jobs": ["load-users"]}


def test_whoever_cannot_renew_for_most_of_its_lease_stops_what_must_not_overlap(kept: Kept) -> None:
    kept.keeper.register()
    passes(kept.keeper, 2.3)
    assert 0 < kept.keeper.look_at_contact() <= LEASE.total_seconds() / 10
    assert kept.exclusive == [7], "the lease is not nearly over"
    passes(kept.keeper, 2.5)
    kept.keeper.look_at_contact()
    kept.keeper.look_at_contact()
    [told] = kept.events.named("server.cut_off")
    assert (told.fields["owner"], told.fields["executions"]) == (kept.keeper.id, [7])
    assert 2.5 <= told.fields["seconds"] < 30


def test_a_lease_counts_from_before_its_renewal_was_sent(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long the answer takes: the database may have renewed it at once."""
    kept.keeper.register()
    renew, sent = leases.renew, time.monotonic()

    def answer_late(*arguments: object) -> bool:
        monkeypatch.setattr(time, "monotonic", lambda: sent + 2.9)
        return renew(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(leases, "renew", answer_late)
    kept.keeper.beat()
    kept.keeper.look_at_contact()
    assert kept.events.named("server.cut_off"), "though it was renewed this very moment"


def break_down(tx: Transaction, *arguments: object) -> None:
    raise OperationalError("UPDATE", {}, Exception("gone"))


def test_an_unreachable_database_decides_nothing(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept.keeper.register()
    alive = kept.keeper.id
    with monkeypatch.context() as broken:
        broken.setattr(leases, "renew", break_down)
        assert 0 < kept.keeper.beat() <= 1, "it tries again soon"
    assert kept.given_up == []
    kept.keeper.beat()
    assert (kept.keeper.id, kept.ids()) == (alive, [alive])
    assert kept.events.named("loop.failed", loop="beat")


def test_whoever_cannot_register_again_tries_until_it_can(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept.keeper.register()
    kept.forget()
    with monkeypatch.context() as broken:
        broken.setattr(leases, "register", break_down)
        kept.keeper.beat()
    assert kept.given_up, "at once, registered or not"
    kept.keeper.beat()
    assert kept.ids() == [kept.keeper.id] == kept.given_up[-1:]


def test_the_lease_suits_the_database_unless_it_is_chosen(
    sqlite_url: str, postgres_url: str
) -> None:
    for url, expected in ((sqlite_url, ON_SQLITE), (postgres_url, ON_POSTGRESQL)):
        store = Store(url)
        assert lease_of(store, None) == expected
        assert lease_of(store, LEASE) == LEASE
        store.close()


def test_the_workers_know_how_long_the_lease_lasts(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted from the moment the renewal was sent, and not for a name that is lost."""
    moment = [100.0]
    for module in (lease, lease_time):
        monkeypatch.setattr(module, "steady", lambda: moment[0])
    keeper = kept.keeper
    keeper.register()
    moment[0] = 102.9
    assert kept.time_left.lasts(keeper.id)
    moment[0] = 103.0
    assert not kept.time_left.lasts(keeper.id)

    keeper.beat()
    assert kept.time_left.lasts(keeper.id)

    before = keeper.id
    kept.forget()
    keeper.beat()
    assert kept.time_left.lasts(keeper.id) and not kept.time_left.lasts(before)


def test_a_name_that_is_lost_lasts_no_longer_once_its_jobs_are_given_up(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lease of the next name begins when that is registered, however long this takes."""
    moment = [100.0]
    for module in (lease, lease_time):
        monkeypatch.setattr(module, "steady", lambda: moment[0])
    lasted: list[bool] = []

    def give_up_slowly(own_id: str) -> None:
        lasted.append(kept.time_left.lasts(dead))
        moment[0] += 2.0

    kept.on_lost = give_up_slowly
    kept.keeper.register()
    dead = kept.keeper.id
    kept.forget()
    kept.keeper.beat()

    assert lasted == [False]
    moment[0] = 104.9
    assert kept.time_left.lasts(kept.keeper.id)
