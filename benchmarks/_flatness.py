"""Whether what was sampled again and again stays as it is, or grows.

A sample is a number for each thing that could leak. The first quarter of the samples is warm-up;
the rest is cut in halves, and of nothing there may usually (by the median) be more in the second
than in the first, but for a tolerance: a share of it, and a few on top, for small numbers waver.
"""

import gc
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

Sample = Mapping[str, float]

MIB = 1 << 20


class Tolerance(NamedTuple):
    """How much more is still the same: a share, and so many."""

    share: float
    few: float


# By the first word of what was sampled: "rows execution_history" are rows.
TOLERANCES = {
    "rows": Tolerance(0.1, 20),
    "dead": Tolerance(0.5, 2000),  # until the next vacuum
    "bytes": Tolerance(0.1, MIB / 2),
    "connections": Tolerance(0, 0),
    "threads": Tolerance(0, 2),
    "files": Tolerance(0, 4),
    "blocks": Tolerance(0, 600),  # less than an object for every run of the hour
    "memory": Tolerance(0.1, 2 * MIB),
}


def grown(samples: Sequence[Sample]) -> list[str]:
    """A sentence for everything of which there is more in the second half, after the warm-up.

    >>> flat = [{"rows wake": 100.0 + number % 3} for number in range(20)]
    >>> grown(flat)
    []
    >>> grown([{"rows wake": 10.0 * number} for number in range(20)])
    ['rows wake: 80 in the first half, 155 in the second']
    """
    told = []
    for what, (before, after) in typical(samples).items():
        share, few = TOLERANCES[what.split()[0]]
        if after > before * (1 + share) + few:
            told.append(f"{what}: {before:,.0f} in the first half, {after:,.0f} in the second")
    return told


def typical(samples: Sequence[Sample]) -> dict[str, tuple[float, float]]:
    """The median of everything in either half.

    >>> typical([{"rows wake": 1.0}, {"rows wake": 3.0}, {"rows wake": 4.0}])
    {'rows wake': (1.0, 3.5)}
    """
    first, second = halves(samples)
    return {
        what: (
            median(sample.get(what, 0) for sample in first),
            median(sample.get(what, 0) for sample in second),
        )
        for what in samples[-1]
    }


def halves(samples: Sequence[Sample]) -> tuple[Sequence[Sample], Sequence[Sample]]:
    """The two halves of all samples but the warm-up.

    >>> [len(half) for half in halves([{"rows": 1.0}] * 20)]
    [7, 8]
    """
    steady = samples[len(samples) // 4 :]
    middle = len(steady) // 2
    return steady[:middle], steady[middle:]


def of_this_process() -> dict[str, float]:
    """What this process holds: Python's own blocks of memory, threads and open files."""
    gc.collect()
    return {
        "blocks": sys.getallocatedblocks(),
        "threads": threading.active_count(),
        "files": len(os.listdir("/proc/self/fd")),
    }


def of_process(pid: int) -> dict[str, float]:
    """What another process holds, as the kernel tells it."""
    folder = Path(f"/proc/{pid}")
    status = dict(
        line.split(":", 1) for line in (folder / "status").read_text("utf-8").splitlines()
    )
    return {
        "memory": float(status["VmRSS"].split()[0]) * 1024,
        "threads": float(status["Threads"]),
        "files": float(len(os.listdir(folder / "fd"))),
    }
