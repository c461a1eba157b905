"""Two commits in pairs: the ratio, its spread, and what counts as a change."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import pairs
from benchmarks.pairs import Figure, Kept, NotMeasured, Pairs, read_spreads, table, verdict

DRAIN = Figure("drain", "drain", "headway", "jobs/s")
WAIT = Figure("latency", "trigger to start, median", "headway", "ms")


def test_the_ratio_is_the_median_of_the_pairs_and_the_spread_their_largest_distance() -> None:
    values = Pairs(base=[100.0, 200.0, 100.0], new=[110.0, 180.0, 105.0])
    assert values.ratios == pytest.approx([1.1, 0.9, 1.05])
    assert values.ratio == pytest.approx(1.05)
    assert values.spread == pytest.approx(0.1)


def test_a_pair_of_which_one_value_is_missing_has_no_ratio() -> None:
    assert Pairs(base=[100.0, 100.0], new=[50.0]).ratios == [0.5]


@pytest.mark.parametrize(
    ("figure", "ratio", "spread", "said"),
    [
        (DRAIN, 0.96, None, "slower"),
        (DRAIN, 0.98, None, ""),
        (DRAIN, 0.96, 0.05, ""),
        (DRAIN, 1.06, 0.05, "faster"),
        (WAIT, 1.06, 0.05, "slower"),
        (WAIT, 0.94, 0.05, "faster"),
    ],
)
def test_a_change_is_larger_than_three_per_cent_and_than_the_spread_of_one_commit(
    figure: Figure, ratio: float, spread: float | None, said: str
) -> None:
    assert verdict(figure, ratio, spread) == said


def test_what_was_measured_is_kept_and_its_spread_read_again(tmp_path: Path) -> None:
    measured = {DRAIN: Pairs([100.0, 100.0], [104.0, 98.0])}
    waited = {WAIT: Pairs([2.0], [2.0])}
    file = tmp_path / "before.json"
    kept = Kept(file, "a", "a")
    kept.keep("drain", measured, full=False)
    kept.keep("latency", waited, full=False)
    assert read_spreads(file, full=False) == {DRAIN: pytest.approx(0.04), WAIT: 0}
    assert read_spreads(file, full=True) == {}
    lines = table(measured | waited, read_spreads(file, full=False)).splitlines()
    assert "drain: drain, headway, jobs/s" in lines[2]
    assert "0.980–1.040" in lines[2]
    assert "4.0%" in lines[2]


def test_a_file_is_continued_part_by_part_and_holds_one_pair_of_commits(tmp_path: Path) -> None:
    file = tmp_path / "before.json"
    Kept(file, "a", "a").keep("drain", {DRAIN: Pairs([100.0], [104.0])}, full=False)
    Kept(file, "a", "a").keep("latency", {WAIT: Pairs([2.0], [2.2])}, full=False)
    Kept(file, "a", "a").keep("drain", {DRAIN: Pairs([100.0], [90.0])}, full=False)
    Kept(file, "a", "a").keep("drain", {DRAIN: Pairs([100.0], [130.0])}, full=True)
    assert read_spreads(file, full=False) == {WAIT: pytest.approx(0.1), DRAIN: pytest.approx(0.1)}
    assert read_spreads(file, full=True) == {DRAIN: pytest.approx(0.3)}
    before = file.read_bytes()
    with pytest.raises(NotMeasured, match="holds figures of a and a; name another file"):
        Kept(file, "a", "b")
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["no-such-commit"], "'no-such-commit' names no commit of this repository"),
        (["HEAD", "--only", "drain,speed"], "'speed' is none of"),
        (["HEAD", "--pairs", "0"], "0 is no number of at least 1; for example 5"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_one_line(arguments: list[str], said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.pairs", *arguments],
        capture_output=True,
        text=True,
        cwd=pairs.ROOT,
    )
    assert done.returncode != 0
    assert said in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


@pytest.mark.long
@pytest.mark.timeout(600)
def test_one_commit_is_measured_against_itself(tmp_path: Path) -> None:
    file = tmp_path / "pairs.json"
    command = [sys.executable, "-m", "benchmarks.pairs", "HEAD", "--pairs", "1"]
    done = subprocess.run(
        [*command, "--only", "latency", "--into", str(file)],
        capture_output=True,
        text=True,
        cwd=pairs.ROOT,
        env=os.environ | {"PYTHONPATH": ""},
    )
    assert done.returncode == 0, done.stderr
    written = json.loads(file.read_text("utf-8"))
    assert written["base"] == written["new"]
    rows = [row for row in written["rows"] if row["subject"] == "headway"]
    assert rows
    assert all(len(row["base"]) == len(row["new"]) == 1 for row in rows)
    assert "latency: trigger to start, median, headway, ms" in done.stdout
    trees = subprocess.run(["git", "worktree", "list"], capture_output=True, text=True).stdout
    assert "headway-pairs-" not in trees
