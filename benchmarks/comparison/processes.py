"""The processes that are measured: each in its own interpreter, ended when the benchmark ends."""

import json
import queue
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).parents[2]
PATIENCE = 300.0
GRACE = 30.0

Said = dict[str, Any]


class DriverFailed(Exception):
    """A process that is measured ended, or said nothing; the message is what it wrote last."""


class Driver:
    """One process, which says what it has to say as a JSON object per line."""

    def __init__(self, command: Sequence[str], errors: IO[str]) -> None:
        self._command = " ".join(command)[:200]
        self._errors = errors
        self._said: queue.Queue[Said | None] = queue.Queue()
        self._process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            bufsize=1,
            start_new_session=True,  # a Ctrl-C is for the benchmark, which then ends this one
        )
        self._listening = threading.Thread(target=self._listen, daemon=True)
        self._listening.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._said.put(json.loads(line))
        self._said.put(None)

    def hear(self, patience: float = PATIENCE) -> Said:
        """The next thing it says."""
        try:
            said = self._said.get(timeout=patience)
        except queue.Empty:
            raise DriverFailed(f"{self._command}: silent for {patience:.0f} s") from None
        if said is None:
            self._errors.seek(0)
            raise DriverFailed(f"{self._command}: ended\n{self._errors.read()[-3000:]}")
        return said

    def send(self, line: object) -> None:
        """Ask it for something."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def stop(self) -> Said:
        """Say that nothing more is wanted of it, and hear its last words."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        return self.hear(GRACE)

    def end(self) -> None:
        """Make sure it is gone."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(GRACE / 10)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._process.wait()
        self._listening.join()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()


@contextmanager
def driver(command: Sequence[str], action: str, options: Mapping[str, Any]) -> Iterator[Driver]:
    """A process doing *action*, for as long as it is needed."""
    with tempfile.TemporaryFile("w+") as errors:
        running = Driver([*command, action, json.dumps(options)], errors)
        try:
            yield running
        finally:
            running.end()


def told_by(command: Sequence[str], action: str, options: Mapping[str, Any]) -> Said:
    """What a process says that does one thing and ends."""
    with driver(command, action, options) as running:
        return running.hear()
