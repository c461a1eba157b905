"""Plant the faults of ``tools/mutants.toml`` one after the other, and run the tests that must fail.

A fault is one piece of source text replaced by another, such as a removed condition. Each is
planted in a temporary copy of the checkout, never in the checkout itself. The copy has a virtual
environment in which only the planted source can be imported, also by processes that tests start.
The test that is known to see the fault runs first, then the tests of its room.

    python -m tools.mutants                    all faults, one at a time
    python -m tools.mutants -n 2 --room store  the faults below src/headway/store, two at a time
    python -m tools.mutants "last chance"      those whose name contains this
    python -m tools.mutants --named            run only the test that is known to see each
    python -m tools.mutants --list             names, files and tests
    python -m tools.mutants --faults tools/mutants_sample.toml    another list
    python -m tools.mutants --skip 70          all but the first seventy, to go on with a long list

The exit status is 1 if a fault was not seen or cannot be planted any more, and 2 if tests fail
without any fault.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import os
import queue
import re
import shutil
import signal
import site
import subprocess
import sys
import tempfile
import time
import tomllib
import venv
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIST = "tools/mutants.toml"
PACKAGE = "src/headway/"
SECONDS = 600.0
PYTEST = ("-m", "pytest", "-x", "-q", "--tb=no", "-p", "no:cacheprovider")
FIRST_FAILURE = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)
PASSED, FAILED, INTERRUPTED, NO_TESTS = 0, 1, 2, 5
KEEPER = b"tests.postgres_server"
NOT_COPIED = (".git", ".venv", "__pycache__", ".*_cache", ".hypothesis", "*.db*", ".peers")


class Verdict(StrEnum):
    """How a planted fault fared."""

    SEEN = "seen"
    NOT_SEEN = "NOT SEEN"
    OUT_OF_TIME = "OUT OF TIME"
    DOES_NOT_APPLY = "DOES NOT APPLY"
    NO_TESTS = "NO TESTS"


@dataclass(frozen=True)
class Fault:
    """One replacement in one file, the tests of its room, and the test that sees it."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    seen_by: str | None = None

    @property
    def room(self) -> str:
        """The path of the file below the package; for other files the whole path."""
        return self.file.removeprefix(PACKAGE)


@dataclass(frozen=True)
class Judged:
    """A fault, its verdict, and the first test that failed or the reason for another verdict."""

    fault: Fault
    verdict: Verdict
    detail: str = ""
    seconds: float = 0.0

    def __str__(self) -> str:
        detail = f" by {self.detail}" if self.verdict is Verdict.SEEN else f": {self.detail}"
        shown = detail if self.detail else ""
        return f"{self.fault.name}: {self.verdict}{shown} ({self.seconds:.0f} s)"


def read_faults(root: Path = ROOT, file: str = LIST) -> list[Fault]:
    """Return the faults of the list in *file* below *root*, in its order."""
    entries = tomllib.loads((root / file).read_text("utf-8"))["fault"]
    return [Fault(**entry | {"tests": tuple(entry["tests"])}) for entry in entries]


def why_not_plantable(fault: Fault, root: Path = ROOT) -> str | None:
    """Return why the fault cannot be planted below *root*, or None if it can."""
    file = root / fault.file
    if not file.is_file():
        return f"{fault.file} does not exist"
    source = file.read_text("utf-8")
    times = source.count(fault.old)
    if times != 1:
        return f"its old text occurs {times} times in {fault.file}"
    if fault.old == fault.new:
        return "its old and new text are the same"
    if file.suffix == ".py":
        try:
            ast.parse(source.replace(fault.old, fault.new))
        except SyntaxError as error:
            return f"{fault.file} would not compile: {error}"
    return None


class Copy:
    """A copy of the checkout whose own interpreter imports the copied source."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root = folder / "checkout"
        shutil.copytree(root, self.root, ignore=shutil.ignore_patterns(*NOT_COPIED))
        self._environment = folder / "environment"
        venv.create(self._environment, symlinks=True, with_pip=False)
        [packages] = (self._environment / "lib").glob("python*/site-packages")
        # As plain entries of the path: the .pth file of the checkout's own source is not read.
        entries = [str(self.root / "src"), *site.getsitepackages()]
        (packages / "copied.pth").write_text("\n".join(entries) + "\n")
        self._copy_commands(Path(sys.executable).parent)

    @property
    def python(self) -> Path:
        """The interpreter of this copy."""
        return self._environment / "bin" / "python"

    def _copy_commands(self, folder: Path) -> None:
        """Some tests start installed commands, found beside the interpreter."""
        for command in folder.iterdir():
            copied = self.python.parent / command.name
            if command.is_symlink() or copied.exists() or not command.is_file():
                continue
            shebang, _, rest = command.read_bytes().partition(b"\n")
            if shebang.startswith(b"#!") and b"python" in shebang:
                copied.write_bytes(b"#!" + os.fsencode(self.python) + b"\n" + rest)
                copied.chmod(0o755)

    @contextmanager
    def planted(self, fault: Fault) -> Iterator[None]:
        """Replace the text of one fault for a while."""
        file = self.root / fault.file
        sound = file.read_text("utf-8")
        self._write(file, sound.replace(fault.old, fault.new))
        try:
            yield
        finally:
            self._write(file, sound)

    def _write(self, file: Path, text: str) -> None:
        file.write_text(text, "utf-8")
        # Two versions of the same size within a second would share the compiled one.
        Path(importlib.util.cache_from_source(str(file))).unlink(missing_ok=True)

    def run(self, tests: Sequence[str], seconds: float) -> tuple[int | None, str]:
        """Run tests until the first fails; the exit code is None if the time was up before."""
        kept = {key: value for key, value in os.environ.items() if not _is_of_a_test_run(key)}
        process = subprocess.Popen(
            [self.python, *PYTEST, f"--basetemp={self._environment.parent / 'tmp'}", *tests],
            cwd=self.root,
            env=kept,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=seconds)
            return process.returncode, output
        except subprocess.TimeoutExpired:
            return None, ""
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                end_programs_below(self._environment)


def end_programs_below(folder: Path) -> None:
    """End what tests started in process groups of their own, and a killed pytest left behind.

    The keeper of the PostgreSQL server stays: it ends by itself when its last user has ended.
    """
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile
            command = (process / "cmdline").read_bytes().split(b"\0")
            if command[0].startswith(os.fsencode(f"{folder}/")) and KEEPER not in command:
                os.kill(int(process.name), signal.SIGKILL)


def _is_of_a_test_run(variable: str) -> bool:
    """The tool may itself be run by pytest, or by a shell that has chosen other source."""
    return variable.startswith("PYTEST_") or variable in {"PYTHONPATH", "PYTHONHOME"}


def judge(fault: Fault, copy: Copy, seconds: float = SECONDS) -> Judged:
    """Plant one fault in *copy* and run its tests until one of them fails.

    The test that is known to see it is started by itself, because that is the quickest verdict.
    """
    reason = why_not_plantable(fault, copy.root)
    if reason is not None:
        return Judged(fault, Verdict.DOES_NOT_APPLY, reason)
    started = time.monotonic()
    judged = Judged(fault, Verdict.NO_TESTS, "no test is named")
    with copy.planted(fault):
        for tests in filter(None, ((fault.seen_by,) if fault.seen_by else (), fault.tests)):
            code, output = copy.run(tests, seconds - (time.monotonic() - started))
            judged = Judged(fault, *_verdict(code, output), time.monotonic() - started)
            if judged.verdict is not Verdict.NOT_SEEN:
                break
    return judged


def _verdict(code: int | None, output: str) -> tuple[Verdict, str]:
    if code is None:
        return Verdict.OUT_OF_TIME, "its tests did not end"
    if code == PASSED:
        return Verdict.NOT_SEEN, ""
    found = FIRST_FAILURE.search(output)
    if code in (FAILED, INTERRUPTED) and found:
        return Verdict.SEEN, found[1]
    last = output.strip().rpartition("\n")[2]
    return Verdict.NO_TESTS, f"pytest ended with exit code {code}: {last}"


def judge_all(
    faults: Sequence[Fault], root: Path, workers: int, seconds: float = SECONDS
) -> Iterator[Judged]:
    """Judge every fault in copies of *root*, one for each worker; yields verdicts as they come."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        os.chmod(folder, 0o755)  # PostgreSQL may run as another user
        copies: queue.Queue[Copy] = queue.Queue()
        for number in range(min(workers, len(faults))):
            copies.put(Copy(root, Path(folder) / str(number)))

        def in_a_free_copy(fault: Fault) -> Judged:
            copy = copies.get()
            try:
                return judge(fault, copy, seconds)
            finally:
                copies.put(copy)

        with ThreadPoolExecutor(workers) as threads:
            yield from threads.map(in_a_free_copy, faults)


def fail_without_faults(faults: Sequence[Fault], root: Path, seconds: float) -> str | None:
    """Return the first of the named tests that fails although nothing is planted."""
    tests = sorted({one.seen_by for one in faults if one.seen_by})
    if not tests:
        return None
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        os.chmod(folder, 0o755)
        verdict, detail = _verdict(*Copy(root, Path(folder) / "sound").run(tests, seconds))
    return None if verdict is Verdict.NOT_SEEN else detail


def picked(faults: Sequence[Fault], names: Sequence[str], rooms: Sequence[str]) -> list[Fault]:
    """Return the faults whose names contain one of *names*, in one of *rooms*; of none all."""
    return [
        one
        for one in faults
        if (not names or any(part in one.name for part in names))
        and (not rooms or any(one.room.startswith(room) for room in rooms))
    ]


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="mutants", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="part of the names of faults")
    parser.add_argument("--faults", default=LIST, metavar="FILE", help=f"default: {LIST}")
    parser.add_argument("--room", action="append", default=[], help="path below src/headway")
    parser.add_argument("--list", action="store_true", help="list the faults and plant none")
    parser.add_argument("--named", action="store_true", help="run no other tests of the room")
    parser.add_argument("--skip", type=int, default=0, help="leave out so many at the beginning")
    parser.add_argument("-n", "--workers", type=int, default=1, help="number of copies at a time")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="time for one fault")
    parser.add_argument(
        "--unchecked",
        action="store_true",
        help="do not first run the named tests without any fault",
    )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Run the command; returns its exit status."""
    asked = _arguments(arguments)
    faults = picked(read_faults(root, asked.faults), asked.names, asked.room)[asked.skip :]
    if not faults:
        print("no fault has such a name; --list shows all", file=sys.stderr)
        return 2
    if asked.named:
        faults = [replace(one, tests=()) if one.seen_by else one for one in faults]
    if asked.list:
        for fault in faults:
            print(f"{fault.name}  {fault.file}  {fault.seen_by or 'no test is known to see it'}")
        return 0
    if not asked.unchecked and (failing := fail_without_faults(faults, root, asked.seconds)):
        print(f"{failing} fails without any fault: nothing can be judged", file=sys.stderr)
        return 2
    judged = []
    for one in judge_all(faults, root, asked.workers, asked.seconds):
        judged.append(one)
        print(one, flush=True)
    seen = sum(one.verdict is Verdict.SEEN for one in judged)
    print(f"{seen} of {len(judged)} faults seen")
    return 0 if seen == len(judged) else 1


if __name__ == "__main__":
    sys.exit(main())
