"""headway and Celery workers as real processes on one database and one broker."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from celery import Celery
from sqlalchemy import func, select

from headway import Headway
from headway.definition.runtime import Runtime
from headway.domain.execution import Execution, ExecutionState
from headway.history import History
from headway.store.engine import Store
from headway.store.migrate import migrate
from headway.store.tables import execution_history, server
from tests.brokers import Broker
from tests.builders import eventually
from tests.scenarios.bodies import Body, read_diaries
from tests.scenarios.fleet import Kill

ROOT = Path(__file__).parents[3]
LEASE = "6s"
PATIENCE = 100.0  # only against hanging: each of these processes takes seconds to start
WORKFLOWS = (
    "quick",
    "quick_async",
    "in_thread",
    "in_loop",
    "stubborn",
    "hands_over",
    "kills_its_process",
    "on_the_side",
    "halting",
)


class Site:
    """One deployment; whatever it started is gone at the end."""

    def __init__(
        self, url: str, broker: Broker, folder: Path, application: str = "shop", **settings: str
    ) -> None:
        self.url = url
        self.application = f"tests.servers.celery.{application}"
        self.broker = broker
        self.folder = folder
        self.kills: list[Kill] = []
        self.processes: list[subprocess.Popen[bytes]] = []
        own_queue = {"SCENARIO_QUEUE": f"shop-{os.urandom(4).hex()}"}  # others use this broker too
        self.settings = {"HEADWAY_SERVER_LEASE": LEASE} | own_queue | settings
        self.store = Store(url)
        migrate(self.store)
        self.history = History(self.store)
        client = Headway("client")
        for name in WORKFLOWS:
            client.workflow(name)(_anything)
        self.runtime = Runtime("client", client.registry, self.store)
        self.celery = Celery("client", broker=broker.url)
        self.celery.conf.task_default_queue = self.settings["SCENARIO_QUEUE"]

    def headway(self) -> subprocess.Popen[bytes]:
        """``headway run``, as a user starts it."""
        return self._start("headway", "-m", "headway", "run", f"{self.application}:hw")

    def worker(
        self, *options: str, pool: str = "prefork", concurrency: int = 2, **variables: str
    ) -> subprocess.Popen[bytes]:
        """``celery worker``, as a user starts it, with processes of its own group."""
        command = ["-m", "celery", "-A", self.application, "worker", "--loglevel=info", "-E"]
        command += [f"--pool={pool}", f"--concurrency={concurrency}", *options]
        command += ["-n", f"worker{len(self.processes)}@%h"]
        return self._start("worker", *command, **variables)

    def _start(self, name: str, *arguments: str, **variables: str) -> subprocess.Popen[bytes]:
        environment = (
            os.environ
            | self.settings
            | variables
            | {
                "HEADWAY_DATABASE_URL": self.url,
                "SCENARIO_BROKER": self.broker.url,
                "SCENARIO_FOLDER": str(self.folder),
                "PYTHONPATH": str(ROOT),
            }
        )
        with (self.folder / f"log-{name}").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, *arguments],
                cwd=self.folder,
                env=environment,
                stdout=log,
                stderr=log,
                process_group=0,
            )
        self.processes.append(process)
        return process

    def log(self, name: str = "worker") -> str:
        path = self.folder / f"log-{name}"
        return path.read_text(errors="replace") if path.exists() else ""

    def logs(self) -> str:
        return "\n".join(f"--- {name}\n{self.log(name)[-9000:]}" for name in ("worker", "headway"))

    def owners(self) -> dict[int, str]:
        """The processes that run what is delivered to them, with their leases."""
        chosen = select(server.c.pid, server.c.id).where(server.c.roles.like("%executor%"))
        with self.store.reading() as tx:
            return {row.pid: row.id for row in tx.connection.execute(chosen)}

    def await_owners(self, count: int) -> dict[int, str]:
        self.wait(lambda: len(self.owners()) >= count)
        return self.owners()

    def deliver(self, *arguments: object, times: int = 1, **options: object) -> None:
        """A message like those of headway, from somebody else."""
        for _ in range(times):
            self.celery.send_task("headway.run", arguments, **options)

    def enqueue(self, workflow: str, *numbers: int) -> None:
        for number in numbers:
            self.runtime.enqueue(workflow, number)

    def await_declared(self, *external_ids: str) -> None:
        """Workers may be up before ``headway run`` has applied what the code declares."""
        wanted = set(external_ids)
        self.wait(lambda: wanted <= {one.external_id for one in self.history.manifests.all()})

    def trigger(self, external_id: str) -> None:
        """Once it is declared."""
        self.await_declared(external_id)
        self.runtime.trigger(external_id)

    def executions(self) -> list[Execution]:
        return self.history.executions.all()

    def states(self) -> Counter[str]:
        return Counter(str(one.state) for one in self.executions())

    def completed(self) -> int:
        ended = select(func.count()).where(execution_history.c.state == ExecutionState.COMPLETED)
        with self.store.reading() as tx:
            return int(tx.connection.execute(ended).scalar_one())

    def bodies(self) -> list[Body]:
        return read_diaries(self.folder, self.kills)

    def await_bodies(self, count: int) -> list[Body]:
        self.wait(lambda: len(self.bodies()) >= count)
        return self.bodies()

    def await_completed(self, count: int) -> None:
        self.wait(lambda: self.completed() >= count)

    def wait(self, condition: Callable[[], bool]) -> None:
        try:
            eventually(condition, PATIENCE)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.states()}\n{self.logs()}") from None

    def release(self) -> None:
        (self.folder / "released").touch()

    def kill(self, pid: int) -> None:
        """SIGKILL one process."""
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        self.kills.append(Kill(pid, time.monotonic_ns()))

    def note_deaths(self, pids: Sequence[int]) -> None:
        """Wait until these processes, which die with another, have done so."""
        self.wait(lambda: not any(_lives(pid) for pid in pids))
        self.kills += [Kill(pid, time.monotonic_ns()) for pid in pids]

    def is_ready(self, worker: subprocess.Popen[bytes]) -> bool:
        """Celery ends a worker that loses a child before that."""
        return (
            re.search(rf"\bworker{self.processes.index(worker)}@\S+ ready", self.log()) is not None
        )

    def children(self, process: subprocess.Popen[bytes]) -> Sequence[int]:
        listed = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
        return [int(pid) for pid in listed.split()]

    def ended(self, process: subprocess.Popen[bytes]) -> None:
        """SIGTERM, and nothing but a clean exit will do."""
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0, self.logs()

    def close(self) -> None:
        for process in self.processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self.celery.close()
        self.store.close()


def _lives(pid: int) -> bool:
    """One that nobody has waited for is dead all the same."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _anything(number: int) -> None: ...
