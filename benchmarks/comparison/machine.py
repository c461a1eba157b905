"""Where a result was measured: machine, versions and settings."""

import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import psycopg

from benchmarks.comparison.bench import Bench
from benchmarks.comparison.environments import PEERS
from benchmarks.comparison.processes import ROOT
from benchmarks.comparison.subjects import SOFTWARE, apscheduler, headway, pgqueuer, procrastinate

SETTINGS = ("fsync", "synchronous_commit", "full_page_writes", "shared_buffers", "max_wal_size")


def surroundings(bench: Bench) -> Mapping[str, Any]:
    """Everything somebody needs to judge the figures, or to measure them again."""
    with psycopg.connect(bench.server.url()) as connection:
        shown = {name: connection.execute(f"SHOW {name}".encode()).fetchone() for name in SETTINGS}
        version = connection.info.server_version
    return {
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "machine": {
            "processors": len(os.sched_getaffinity(0)),
            "architecture": platform.machine(),
            "system": platform.system(),
            "load_average": os.getloadavg()[0],
        },
        "versions": {
            "python": platform.python_version(),
            "postgresql": f"{version // 10_000}.{version % 10_000}",
            **peers(),
        },
        "postgresql": {name: row[0] for name, row in shown.items() if row},
        "sizes": asdict(bench.sizes),
        "workers": {
            one.name: dict(one.worker)
            for one in (headway(), pgqueuer(), procrastinate(), apscheduler())
        },
        "missing": bench.missing,
    }


def peers() -> Mapping[str, str]:
    """The version of each peer, as its file pins it."""
    first = {name: (PEERS / f"{name}.txt").read_text("utf-8").split()[0] for name in SOFTWARE[1:]}
    return {name: line.partition("==")[2] for name, line in first.items()}


def commit() -> str:
    """The commit that was measured; with a plus if files differ from it."""
    command = ["git", "-c", "safe.directory=*", "describe", "--always", "--dirty=+", "--abbrev=12"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()


def in_a_sentence(around: Mapping[str, Any]) -> str:
    """The surroundings for people."""
    versions, machine = around["versions"], around["machine"]
    peers_named = ", ".join(f"{name} {versions[name]}" for name in SOFTWARE[1:])
    return (
        f"{around['made_at'][:10]}, commit {around['commit']}, {machine['processors']} processors "
        f"({machine['architecture']}), Python {versions['python']}, PostgreSQL "
        f"{versions['postgresql']} with synchronous_commit "
        f"{around['postgresql']['synchronous_commit']}; {peers_named}. "
        f"Median of {around['sizes']['repetitions']} repetitions and their range; "
        f"load average {machine['load_average']:.1f}."
    )


def command_line() -> str:
    """How this run was asked for."""
    return " ".join(["python -m benchmarks.comparison", *sys.argv[1:]])
