"""How a driver talks to the benchmark: one JSON object per line. Standard library only."""

import json
import resource
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

Action = Callable[[dict[str, Any]], None]


def tell(**values: Any) -> None:
    """Say one thing to the benchmark, at once."""
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


def asked() -> Iterator[str]:
    """Each line the benchmark sends, until it sends no more."""
    while line := sys.stdin.readline():
        yield line.strip()


def when_told_to_stop(stop: Callable[[], object]) -> None:
    """Call *stop*, on another thread, once the benchmark is done with this process, or is gone."""

    def wait() -> None:
        for _ in asked():
            pass
        stop()

    threading.Thread(target=wait, daemon=True).start()


def peak_mb() -> float:
    """The most memory this process has had, in MB."""
    try:
        # Linux keeps in ru_maxrss what the parent had when it forked.
        status = Path("/proc/self/status").read_text("ascii")
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 / 1024


def drive(actions: Mapping[str, Action]) -> None:
    """Do the action the command line names, with its options as JSON."""
    name, options = sys.argv[1:]
    actions[name](json.loads(options))
