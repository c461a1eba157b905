"""Measures headway beside its peers, prints the tables and keeps them: ``make bench``."""

import argparse
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.comparison.bench import FULL, Bench, Sizes
from benchmarks.comparison.keeping import RESULTS, keep, put_into_readme
from benchmarks.comparison.machine import command_line, in_a_sentence, surroundings
from benchmarks.comparison.parts import PARTS
from benchmarks.comparison.progress import say
from benchmarks.comparison.report import page
from benchmarks.comparison.subjects import SOFTWARE
from headway.torture.postgres import private_server


def main() -> int:
    options = parsed()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's "&" had it ignored
    sizes = FULL if options.full else Sizes()
    sizes = replace(sizes, repetitions=options.repetitions)
    say("starting PostgreSQL")
    with private_server(durable=True) as server:
        bench = Bench(server, sizes, options.software)
        stopped = not measured(bench, options.only)
        around = {**surroundings(bench), "command": command_line(), "stopped": stopped}
    if not bench.results.values:
        return 1
    text = page(bench.results, {part.name: part.about for part in PARTS}, in_a_sentence(around))
    print(text)
    whole = not (options.only or options.software or stopped)
    if folder := options.into or (RESULTS if whole else None):
        keep(bench.results, around, text, folder)
        if options.readme:
            put_into_readme(folder)
    return 1 if stopped else 0


def measured(bench: Bench, only: Sequence[str]) -> bool:
    """Measure the parts; False if somebody stopped that."""
    wanted = [part for part in PARTS if not only or part.name in only]
    try:
        for number, part in enumerate(wanted, 1):
            say(f"part {number} of {len(wanted)}: {part.name}")
            part.measure(bench)
    except KeyboardInterrupt:
        say("stopped: what follows is what was measured until now")
        return False
    return True


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.comparison", description=__doc__)
    parts = [part.name for part in PARTS]
    parser.add_argument("--only", type=listed(parts), default=(), help=f"of {', '.join(parts)}")
    parser.add_argument(
        "--software", type=listed(SOFTWARE), default=(), help=f"of {', '.join(SOFTWARE)}"
    )
    parser.add_argument("--full", action="store_true", help="a million manifests, two million runs")
    parser.add_argument("--repetitions", type=positive, default=3, help="of everything")
    parser.add_argument(
        "--into", type=Path, help="the folder for the results; else only a whole run is kept"
    )
    parser.add_argument("--readme", action="store_true", help="put the table into README.md")
    return parser.parse_args()


def listed(known: Sequence[str]) -> Callable[[str], list[str]]:
    """Reads names separated by commas."""

    def names(text: str) -> list[str]:
        found = [name.strip() for name in text.split(",") if name.strip()]
        for name in found:
            if name not in known:
                raise argparse.ArgumentTypeError(
                    f"{name!r} is none of {', '.join(known)}; for example {known[0]},{known[1]}"
                )
        return found

    return names


def positive(text: str) -> int:
    """Reads a number of at least one."""
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of at least 1; for example 3")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
