"""A store accepts nothing any more once its SQLite file was deleted or replaced."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, select
from sqlalchemy.pool import NullPool

from headway.domain.work_queue import NewEntry, Source
from headway.errors import DatabaseLost, DatabaseUnavailable
from headway.store import executions
from headway.store.engine import Store
from headway.store.migrate import migrate
from headway.store.pulse import take_pulse
from headway.store.tables import work_queue
from tests.builders import OWNER, Scene
from tests.runtime_verbs import runtime_of

AD_HOC = NewEntry("work", Source.AD_HOC, "null")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


@pytest.fixture
def file(folder: Path) -> Path:
    return folder / "headway.db"


@pytest.fixture
def scene(file: Path) -> Iterator[Scene]:
    with Scene(f"sqlite:///{file}") as scene:
        scene.pending("work")
        yield scene


def delete(file: Path) -> None:
    file.unlink()


def delete_all(file: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        Path(f"{file}{suffix}").unlink(missing_ok=True)


def move_the_folder(file: Path) -> None:
    file.parent.rename(file.parent.with_name("elsewhere"))


def replace_by_a_backup(file: Path) -> None:
    backup = file.with_name("backup.db")
    with sqlite3.connect(file) as source, sqlite3.connect(backup) as target:
        source.backup(target)
    source.close()
    target.close()
    backup.rename(file)


def recreate(file: Path) -> None:
    delete_all(file)
    make_tables_elsewhere(file)


def make_tables_elsewhere(file: Path) -> None:
    """In a process of its own, which opens the path anew."""
    code = (
        "import sys; from headway.store.engine import Store;"
        "from headway.store.migrate import migrate;"
        "store = Store(sys.argv[1]); migrate(store); store.close()"
    )
    subprocess.run([sys.executable, "-c", code, f"sqlite:///{file}"], check=True)


def delete_wal(file: Path) -> None:
    Path(f"{file}-wal").unlink()


def delete_shm(file: Path) -> None:
    Path(f"{file}-shm").unlink()


def replace_wal(file: Path) -> None:
    copy = shutil.copy(f"{file}-wal", f"{file}-copy")
    os.rename(copy, f"{file}-wal")


LOSSES: dict[str, tuple[Callable[[Path], None], str]] = {
    "deleted": (delete, "deleted or moved"),
    "deleted with its companions": (delete_all, "deleted or moved"),
    "folder moved": (move_the_folder, "deleted or moved"),
    "replaced": (replace_by_a_backup, "replaced by another file"),
    "recreated": (recreate, "replaced by another file"),
    "wal deleted": (delete_wal, "deleted or moved"),
    "wal replaced": (replace_wal, "replaced by another file"),
    "shm deleted": (delete_shm, "deleted or moved"),
}


@pytest.fixture(params=LOSSES)
def lost(request: pytest.FixtureRequest, scene: Scene, file: Path) -> str:
    lose, told = LOSSES[request.param]
    lose(file)
    return told


VERBS: dict[str, Callable[[Scene], object]] = {
    "enqueue": lambda scene: runtime_of(scene).enqueue("work"),
    "enqueue by the store": lambda scene: scene.enqueue(AD_HOC),
    "manage": lambda scene: scene.manage(),
    "dispatch": lambda scene: scene.dispatch(),
    "claim": lambda scene: scene.claim(),
    "pulse": lambda scene: pulse(scene.store),
    "read": lambda scene: scene.history.queue.all(),
}


def pulse(store: Store) -> None:
    with store.unclocked() as tx:
        take_pulse(tx, OWNER)


def test_every_verb_is_refused_and_says_why(scene: Scene, file: Path, lost: str) -> None:
    for name, verb in VERBS.items():
        with pytest.raises(DatabaseUnavailable) as refused:
            verb(scene)
        told = str(refused.value)
        assert f"{file}" in told and lost in told, name
        assert "start" in told and "\n" not in told, name


def test_the_loss_is_told_once_to_who_listens(scene: Scene, file: Path) -> None:
    told: list[DatabaseLost] = []
    scene.store.on_lost(told.append)
    assert scene.store.lost is None
    delete(file)
    for verb in (scene.claim, scene.manage, scene.claim):
        with pytest.raises(DatabaseLost):
            verb()
    assert told == [scene.store.lost]


@pytest.mark.parametrize("lose", [delete, replace_by_a_backup])
def test_a_commit_into_a_lost_file_is_not_acknowledged(
    scene: Scene, file: Path, lose: Callable[[Path], None]
) -> None:
    with pytest.raises(DatabaseLost), scene.store.writing() as tx:
        executions.claim_pending(tx, OWNER, 1, ["work"])
        lose(file)


def test_no_connection_is_opened_to_a_file_that_is_not_there(scene: Scene, file: Path) -> None:
    """SQLite would create an empty one."""
    delete(file)
    with pytest.raises(DatabaseLost), scene.store.apart().reading():
        pass
    apart = [scene.store.apart() for _ in range(2)]
    for store in apart:
        with pytest.raises(DatabaseLost), store.writing():
            pass


def test_what_was_moved_away_and_back_may_have_been_written_to(scene: Scene, file: Path) -> None:
    away = file.with_name("away.db")
    file.rename(away)
    with pytest.raises(DatabaseLost):
        scene.claim()
    away.rename(file)
    with pytest.raises(DatabaseLost):
        scene.claim()


def test_once_closed_the_store_opens_what_is_there_now(scene: Scene, file: Path) -> None:
    recreate(file)
    with pytest.raises(DatabaseLost):
        scene.claim()
    scene.store.close()
    assert scene.claim() == []
    assert scene.store.lost is None


def test_closing_leaves_the_files_of_the_next_process_alone(scene: Scene, file: Path) -> None:
    """SQLite deletes -wal and -shm by their names when the last connection is closed."""
    delete_all(file)
    with Scene(f"sqlite:///{file}") as other:
        other.enqueue(AD_HOC)
        scene.store.close()
        assert len(other.history.queue.all()) == 1
        other.enqueue(AD_HOC)
    with Scene(f"sqlite:///{file}") as again:
        assert len(again.history.queue.all()) == 2


def test_a_symbolic_link_that_leads_elsewhere_is_a_replacement(tmp_path: Path) -> None:
    real, other, link = tmp_path / "real.db", tmp_path / "other.db", tmp_path / "link.db"
    for path in (real, other):
        make_tables_elsewhere(path)
    link.symlink_to(real)
    with Scene(f"sqlite:///{link}") as scene:
        scene.enqueue(AD_HOC)
        assert scene.store.lost is None
        link.unlink()
        link.symlink_to(other)
        with pytest.raises(DatabaseLost, match="replaced by another file"):
            scene.claim()
    with Scene(f"sqlite:///{link}") as scene:
        scene.enqueue(AD_HOC)
        Path(f"{other}-wal").unlink()
        with pytest.raises(DatabaseLost, match=r"other\.db-wal was deleted"):
            scene.claim()


def test_other_processes_may_come_and_go(file: Path) -> None:
    """The last one that closes a file deletes -wal and -shm; so does one that only migrates it."""
    store = Store(f"sqlite:///{file}")
    store.check()
    make_tables_elsewhere(file)
    for _ in range(2):
        migrate(store)
        with store.writing() as tx:
            tx.connection.execute(select(work_queue.c.id))
        make_tables_elsewhere(file)
        store.close()
    assert store.lost is None


def test_a_checkpoint_and_vacuum_are_no_loss(scene: Scene, file: Path) -> None:
    with sqlite3.connect(file) as own:
        own.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        own.execute("VACUUM")
    own.close()
    assert len(scene.claim()) == 1
    scene.manage()


@pytest.fixture
def callers(file: Path) -> Iterator[Engine]:
    engine = create_engine(f"sqlite:///{file}")
    yield engine
    engine.dispose()


@pytest.mark.parametrize("lose", [delete, replace_by_a_backup])
def test_a_callers_connection_to_a_lost_file_is_refused(
    scene: Scene, callers: Engine, file: Path, lose: Callable[[Path], None]
) -> None:
    with callers.begin() as connection:
        scene.store.joining(connection)
    scene.store.close()  # only the caller's own connection is open
    lose(file)
    with callers.connect() as connection, pytest.raises(DatabaseLost):
        scene.store.joining(connection)


def test_a_caller_who_opens_the_file_anew_is_served(scene: Scene, file: Path) -> None:
    engine = create_engine(f"sqlite:///{file}", poolclass=NullPool)
    with engine.begin() as connection:
        scene.store.joining(connection)
    scene.store.close()
    recreate(file)
    with engine.begin() as connection:
        scene.store.joining(connection)
    engine.dispose()


def test_a_process_that_dropped_its_locks_notices_when_another_deletes_its_wal(
    scene: Scene, file: Path
) -> None:
    """Closing any handle on the file ends all of a process's POSIX locks on it.

    A backup that a job makes by reading the file does that. The next process takes itself for the
    only one, and deletes -wal and -shm when it closes.
    """
    file.read_bytes()
    make_tables_elsewhere(file)
    with pytest.raises(DatabaseLost, match="-wal was deleted"):
        scene.enqueue(AD_HOC)
