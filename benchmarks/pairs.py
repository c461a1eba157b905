"""Two commits measured in pairs on one machine: the ratio of each figure, and its spread.

    python -m benchmarks.pairs BASE [NEW] [--pairs 5] [--only drain,latency] [--full] [--into FILE]

Each commit gets a checkout of its own with its own benchmark, so modules may have moved in between.
A pair is one repetition of one part with either checkout, in turn; the next pair begins with the
other one. With one commit alone it is measured against itself (A/A): the ratios then show what the
machine does by itself. `--against FILE` compares with the spread of such a run, and a figure counts
as changed where the median of its ratios is off by more than 3 % and by more than that spread.
`--into FILE` is written after each part, and keeps what FILE holds of the same commits from others.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.comparison.environments import ENVIRONMENTS
from benchmarks.comparison.parts import PARTS
from benchmarks.comparison.progress import say
from benchmarks.comparison.report import number

ROOT = Path(__file__).parents[1]
TOLERANCE = 0.03
# Nothing of headway is compared there: what PostgreSQL does by itself.
LEFT_OUT = ("floor",)
SMALLER_IS_BETTER = ("ms", "s", "MB", "1/s")


class NotMeasured(Exception):
    """A commit could not be checked out or measured; the message says why."""


@dataclass(frozen=True, order=True)
class Figure:
    """One figure of the benchmark: a line of its tables for one piece of software."""

    part: str
    title: str
    subject: str
    unit: str

    @property
    def is_cost(self) -> bool:
        return self.unit in SMALLER_IS_BETTER


@dataclass
class Pairs:
    """The values of one figure, the base's and the new commit's, pair by pair."""

    base: list[float] = field(default_factory=list)
    new: list[float] = field(default_factory=list)

    @property
    def ratios(self) -> list[float]:
        """New by base, for each pair; a pair of which one value is missing has none."""
        return [new / base for base, new in zip(self.base, self.new, strict=False) if base]

    @property
    def ratio(self) -> float:
        return statistics.median(self.ratios)

    @property
    def spread(self) -> float:
        """The largest distance of a pair's ratio from 1."""
        return max(abs(ratio - 1) for ratio in self.ratios)


def main() -> int:
    options = parsed()
    known = read_spreads(options.against, options.full) if options.against else {}
    names = [options.base, options.new or options.base]
    figures: dict[Figure, Pairs] = {}
    try:
        base_commit, new_commit = (commit_of(name) for name in names)
        kept = Kept(options.into, base_commit, new_commit) if options.into else None
        with checkouts(names) as (base, new):
            for part in options.only:
                measured = measure(base, new, part, options.pairs, options.full)
                figures |= measured
                if kept and measured:
                    kept.keep(part, measured, options.full)
    except NotMeasured as reason:
        print(f"error: {reason}", file=sys.stderr)
        return 1
    print(table(figures, known))
    return 0


def commit_of(name: str) -> str:
    """The full id of a commit that is named in any way git knows."""
    command = ["git", "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        raise NotMeasured(f"{name!r} names no commit of this repository; for example HEAD~1")
    return done.stdout.strip()


@contextmanager
def checkouts(names: Sequence[str]) -> Iterator[list[Path]]:
    """A worktree for each commit, with the peers' environments of this checkout."""
    ENVIRONMENTS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="headway-pairs-") as folder:
        trees = []
        try:
            for place, name in enumerate(names):
                tree = Path(folder) / str(place)
                git("worktree", "add", "--quiet", "--detach", str(tree), commit_of(name))
                trees.append(tree)
                (tree / "benchmarks" / ENVIRONMENTS.name).symlink_to(ENVIRONMENTS)
            yield trees
        finally:
            for tree in trees:
                git("worktree", "remove", "--force", str(tree))


def git(*arguments: str) -> None:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        raise NotMeasured(f"git {' '.join(arguments)}: {done.stderr.strip()}")


def measure(base: Path, new: Path, part: str, pairs: int, full: bool) -> dict[Figure, Pairs]:
    """Measure a part in pairs; what one commit cannot measure yet is left out and said."""
    if not (knows(base, part) and knows(new, part)):
        say(f"{part}: left out, for one of the commits has no such part")
        return {}
    figures: dict[Figure, Pairs] = {}
    for pair in range(pairs):
        say(f"{part}: pair {pair + 1} of {pairs}")
        for is_new in (False, True) if pair % 2 == 0 else (True, False):
            for figure, value in repetition(new if is_new else base, part, full):
                values = figures.setdefault(figure, Pairs())
                (values.new if is_new else values.base).append(value)
    return {figure: values for figure, values in figures.items() if values.ratios}


def knows(tree: Path, part: str) -> bool:
    return f'"{part}"' in (tree / "benchmarks/comparison/parts.py").read_text("utf-8")


def repetition(tree: Path, part: str, full: bool) -> Iterator[tuple[Figure, float]]:
    """The figures of one part, measured once by the benchmark of *tree* with its own headway."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "benchmarks.comparison", f"--only={part}"]
        command += ["--software=headway,pgqueuer", "--repetitions=1", f"--into={folder}"]
        command += ["--full"] if full else []
        paths = os.pathsep.join([str(tree / "src"), str(tree)])
        done = subprocess.run(
            command,
            cwd=tree,
            env=os.environ | {"PYTHONPATH": paths},
            capture_output=True,
            text=True,
        )
        results = Path(folder) / "latest.json"
        if done.returncode != 0 or not results.exists():
            raise NotMeasured(f"{part} at {tree}: {done.stderr[-3000:]}")
        for row in json.loads(results.read_text("utf-8"))["rows"]:
            for subject, measured in row["subjects"].items():
                figure = Figure(row["part"], row["title"], subject, row["unit"])
                yield figure, measured["median"]


class Kept:
    """The file for everything measured of two commits, part by part."""

    def __init__(self, file: Path, base: str, new: str) -> None:
        self._file = file
        self._commits = {"base": base, "new": new}
        self._rows: list[dict[str, Any]] = []
        if file.exists():
            found = json.loads(file.read_text("utf-8"))
            if any(found[name] != commit for name, commit in self._commits.items()):
                raise NotMeasured(
                    f"--into: {file} holds figures of {found['base'][:12]} and "
                    f"{found['new'][:12]}; name another file, or delete it"
                )
            self._rows = found["rows"]

    def keep(self, part: str, figures: Mapping[Figure, Pairs], full: bool) -> None:
        """Write the figures of a part in place of earlier ones of the same sizes."""
        others = [row for row in self._rows if (row["part"], row["full"]) != (part, full)]
        self._rows = others + [
            {
                **asdict(figure),
                "full": full,
                "base": values.base,
                "new": values.new,
                "ratio": round(values.ratio, 4),
                "spread": round(values.spread, 4),
            }
            for figure, values in figures.items()
        ]
        document = self._commits | {"processors": os.cpu_count(), "rows": self._rows}
        self._file.write_text(json.dumps(document, indent=1) + "\n", "utf-8")
        say(f"{part}: written to {self._file}")


def read_spreads(file: Path, full: bool) -> dict[Figure, float]:
    """The spread of each figure of an A/A run that was kept, of the same sizes."""
    rows = json.loads(file.read_text("utf-8"))["rows"]
    return {
        Figure(row["part"], row["title"], row["subject"], row["unit"]): row["spread"]
        for row in rows
        if row["full"] == full
    }


def table(figures: Mapping[Figure, Pairs], known: Mapping[Figure, float]) -> str:
    """A line for each figure: medians, ratio, the range of the ratios, and a verdict."""
    lines = [
        "| figure | base | new | new / base | range | A/A spread | |",
        "| --- | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for figure, values in figures.items():
        aa = known.get(figure)
        cells = [
            f"{figure.part}: {figure.title}, {figure.subject}, {figure.unit}",
            number(statistics.median(values.base)),
            number(statistics.median(values.new)),
            f"{values.ratio:.3f}",
            f"{min(values.ratios):.3f}–{max(values.ratios):.3f}",
            "–" if aa is None else f"{aa:.1%}",
            verdict(figure, values.ratio, aa),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def verdict(figure: Figure, ratio: float, spread: float | None) -> str:
    """Whether a ratio is more than the tolerance and the spread of this machine.

    >>> drain = Figure("drain", "drain", "headway", "jobs/s")
    >>> verdict(drain, 0.94, 0.02), verdict(drain, 0.94, 0.08), verdict(drain, 1.05, None)
    ('slower', '', 'faster')
    >>> verdict(Figure("latency", "median", "headway", "ms"), 1.2, 0.05)
    'slower'
    """
    if abs(ratio - 1) <= max(TOLERANCE, spread or 0):
        return ""
    return "slower" if (ratio > 1) == figure.is_cost else "faster"


def parsed() -> argparse.Namespace:
    description = (__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pairs", description=description)
    parser.add_argument("base", help="a commit, in any way git knows it")
    parser.add_argument("new", nargs="?", help="another one; without it, base against itself")
    parser.add_argument("--pairs", type=int, default=5)
    names = [part.name for part in PARTS if part.name not in LEFT_OUT]
    parser.add_argument(
        "--only",
        type=lambda text: text.split(","),
        default=names,
        help=f"of {', '.join(names)}",
    )
    parser.add_argument("--full", action="store_true", help="the sizes of make bench-full")
    parser.add_argument("--against", type=Path, help="an A/A run whose spread counts as noise")
    parser.add_argument("--into", type=Path, help="a file for everything measured, as JSON")
    options = parser.parse_args()
    if unknown := [name for name in options.only if name not in names]:
        parser.error(f"--only: {unknown[0]!r} is none of {', '.join(names)}; for example drain")
    if options.pairs < 1:
        parser.error(f"--pairs: {options.pairs} is no number of at least 1; for example 5")
    return options


if __name__ == "__main__":
    sys.exit(main())
