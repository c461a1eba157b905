"""Real headway processes, what their jobs left as evidence, and what the database says."""

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from headway.domain.execution import ExecutionState
from headway.history import History
from headway.store.engine import Store
from headway.store.migrate import migrate
from tests.builders import PATIENCE, eventually

ROOT = Path(__file__).parents[2]
FAR_APART = {
    "HEADWAY_MANAGER_POLLING_INTERVAL": "10m",
    "HEADWAY_DISPATCHER_POLLING_INTERVAL": "10m",
    "HEADWAY_POLLING_INTERVAL": "10m",
}


class Deployment:
    """One database, one folder of evidence, and the processes started on them."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []
        self.store = Store(url)
        migrate(self.store)
        self.history = History(self.store)

    def start(
        self,
        *arguments: str,
        jobs: int = 2,
        settings: Mapping[str, str] | None = None,
        app: str = "jobs:hw",
    ) -> subprocess.Popen[bytes]:
        """``headway run`` of an app of this folder with these arguments and HEADWAY_ variables."""
        environment = {
            **os.environ,
            **(settings or {}),
            "HEADWAY_DATABASE_URL": self.url,
            "SCENARIO_FOLDER": str(self.folder),
            "SCENARIO_COUNT": str(jobs),
            "PYTHONPATH": str(ROOT),
        }
        command = [sys.executable, "-m", "headway", "run", app, *arguments]
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(
                command, cwd=Path(__file__).parent, env=environment, stdout=log, stderr=log
            )
        self.processes.append(process)
        return process

    def stop(self, *processes: subprocess.Popen[bytes]) -> None:
        """SIGTERM, and nothing but a clean exit will do."""
        for process in processes:
            process.send_signal(signal.SIGTERM)
        for process in processes:
            self.ended(process)

    def freeze(self, process: subprocess.Popen[bytes]) -> None:
        """SIGSTOP it while it writes nothing: on SQLite whoever is stopped inside a write blocks
        all others, as the guide "Deploying" says, and nothing could be shown of them."""
        with self.store.writing():
            process.send_signal(signal.SIGSTOP)
            os.waitpid(process.pid, os.WUNTRACED)

    def ended(self, process: subprocess.Popen[bytes]) -> None:
        assert process.wait(PATIENCE) == 0, self.log()

    def log(self) -> str:
        return (self.folder / "log").read_text()

    def release(self, execution_id: int | None = None) -> None:
        """Let every job end, those of later processes too; or only one run."""
        (self.folder / (f"released-{execution_id}" if execution_id else "released")).touch()

    def evidence(self, what: str) -> Counter[str]:
        """How often each job left this line."""
        path = self.folder / "evidence"
        lines = path.read_text().splitlines() if path.exists() else []
        return Counter(line.split()[0] for line in lines if line.endswith(f" {what}"))

    def wait_for(self, what: str, count: int) -> None:
        """Until so many of these lines are there."""
        try:
            eventually(lambda: self.evidence(what).total() >= count)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.evidence(what)}\n{self.log()}") from None

    def wait_until_completed(self, count: int) -> None:
        eventually(lambda: self.states()[ExecutionState.COMPLETED] >= count)

    def states(self) -> Counter[ExecutionState]:
        return Counter(one.state for one in self.history.executions.all())

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
        self.store.close()
