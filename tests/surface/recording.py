"""Texts and names that users, programs, stored rows and other versions rely on, as data.

Each function returns one of them as it is now. `test_recorded.py` compares them with the files in
`recorded/`; `python -m tests.surface.recording` writes these anew, for a change that is meant.
"""

from __future__ import annotations

import enum
import importlib
import io
import json
import os
import pkgutil
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from typer.main import get_command

import headway
from headway import Group, Headway, Item, Run, cron, every, exclude, extras, once
from headway.cli import app as command_line
from headway.config import Settings, variable_name
from headway.domain.setting_values import as_text
from headway.errors import HeadwayError, MissingExtra
from headway.manager import sweep
from headway.store import absent_servers, live, unknown_workflows
from headway.store.engine import Store
from headway.store.locks import Lock
from headway.store.notifications import EVERYBODY
from headway.store.tables import schema
from headway.testing import Sandbox
from headway.web.app import build_app
from headway.web.security.access import Access
from tests.store.factories import everything
from tests.surface.test_commands_documented import commands
from tests.surface.test_events_documented import emitted

FOLDER = Path(__file__).parent / "recorded"
WIDTH = "100"


def openapi() -> str:
    """The REST interface's document."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(f"sqlite:///{Path(folder) / 'headway.db'}")
        document = build_app(Headway("shop"), store, Access()).openapi()
        store.close()
    return as_json(document)


def help_texts() -> str:
    """What every command says about itself."""
    own = {name: value for name, value in os.environ.items() if name not in {"LINES", "NO_COLOR"}}
    paths = ["headway", *(path for path, _ in commands(get_command(command_line), "headway"))]
    program = "import sys, json; from headway.cli import main\nfor path in json.load(sys.stdin):\n"
    program += "    print('$', path, '--help', flush=True)\n    try: main([*path.split()[1:], "
    program += "'--help'])\n    except SystemExit: pass\n"
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps(paths),
        env=own | {"COLUMNS": WIDTH, "TERM": "dumb"},
        capture_output=True,
        text=True,
        check=True,
    )
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())


def settings() -> str:
    """Every setting with its variable, type, default and meaning."""
    return as_json(
        {
            name: {
                "variable": variable_name(name),
                "default": "computed" if field.default_factory else as_text(field.default),
                "meaning": field.description,
            }
            for name, field in Settings.model_fields.items()
        }
    )


def events() -> str:
    """Every event with its fields."""
    return as_json({name: sorted(fields) for name, fields in emitted().items()})


def metrics() -> str:
    """The names, labels and meanings of the metrics for Prometheus, without any run."""
    from headway.telemetry.prometheus import Prometheus  # noqa: PLC0415 - an optional part

    with tempfile.TemporaryDirectory() as folder:
        hw = Headway("shop", database_url=f"sqlite:///{Path(folder) / 'headway.db'}")
        with Sandbox(hw) as box:
            page = Prometheus(store=box.store).page().decode()
    return (
        "\n".join(
            line for line in page.splitlines() if line.startswith("# ") and " headway_" in line
        )
        + "\n"
    )


def errors() -> str:
    """The tree of errors, by their names and those of their bases."""
    list(modules())  # an error is known once its module is imported
    return as_json(
        {
            kind.__name__: [base.__name__ for base in kind.__mro__[1:-1]]
            for kind in sorted(_subclasses(HeadwayError), key=lambda one: one.__name__)
            if kind.__module__.startswith("headway")
        }
    )


def _subclasses(kind: type[Any]) -> Iterator[type[Any]]:
    yield kind
    for one in kind.__subclasses__():
        yield from _subclasses(one)


def values() -> str:
    """The values of every enumeration: states, codes, actions, roles, kinds, numbers of locks."""
    found = [
        sorted(str(member.value) for member in kind)
        for module in modules()
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, enum.Enum)
        if kind.__module__ == module.__name__
    ]
    return as_json(sorted(found))


def names() -> str:
    """Names that are stored or sent, and no enumeration's."""
    return as_json(
        {
            "marks": sorted(
                [
                    *(sweep.POSITION, sweep.RULES, live.OLDEST),
                    *(unknown_workflows.MARK, absent_servers.PREFIX),
                ]
            ),
            "locks": {lock.name: int(lock) for lock in Lock},
            "topic of everybody": EVERYBODY,
            "tables": {
                table.name: {
                    "columns": [f"{column.name} {column.type}" for column in table.columns],
                    "constraints": sorted(str(one.name) for one in table.constraints if one.name),
                    "indexes": sorted(str(one.name) for one in table.indexes),
                }
                for table in schema.sorted_tables
            },
        }
    )


def modules() -> Iterator[Any]:
    for found in pkgutil.walk_packages(headway.__path__, "headway."):
        if not found.name.endswith("__main__"):
            try:
                yield importlib.import_module(found.name)
            except MissingExtra:
                assert not extras.EXTRAS, f"{found.name} needs an extra that is not installed"


# A story with a bit of everything that is stored.


def story() -> Headway:
    """An application whose jobs succeed, fail, stop trying, wait and are activated."""
    hw = Headway("shop", database_url="sqlite:////no-such-folder/own.db")

    @hw.workflow(keep_output=True)
    def load(rows: int) -> int:
        return rows

    @hw.workflow
    def break_down(what: str) -> None:
        raise ValueError(f"{what} is broken")

    @hw.workflow
    def choose(run: Run) -> None:
        run.progress(0.5, "half of it")
        run.activate("chosen", 7)
        run.hand_over("look at the figures")

    weekend = exclude.days("sat", "sun")
    hw.schedule(load, "hourly", 3, every(hours=1), variance=timedelta(minutes=5), exclude=[weekend])
    hw.schedule(load, "daily", 4, cron("0 6 * * *", tz="Europe/Berlin"), group=GROUP, priority=2)
    hw.schedule_once(load, "single", 5, once(datetime.fromisoformat("2026-01-05T12:00:00+00:00")))
    hw.schedule(break_down, "broken", "the pump", every(minutes=10), max_retries=2)
    choosing = hw.schedule(choose, "choosing", None, every(hours=6))
    choosing.include(load, "chosen", 6, dormant=True)
    hw.schedule_many(load, "batch", [Item("a", 1), Item("b", 2)], every(hours=12))
    hw.schedule(load, "first", 1, every(hours=12)).then_include(load, "second", 8)
    return hw


GROUP = Group("daily-work", max_active_jobs=2, priority=1)


def rows() -> str:
    """What the story and people leave in the database, but for what differs from run to run."""
    hw = story()
    with Sandbox(hw) as box:
        box.advance(hours=13)
        alice = hw.operator("alice")
        alice.trigger("daily", 9, delay=timedelta(hours=1))
        alice.set_group("daily-work", max_active_jobs=1)
        alice.disable("hourly")
        alice.dead_letters.requeue(box.dead_letters()[0].id, "the pump was changed")
        alice.cancel("daily", reason="wrong day")
        alice.rerun(box.executions("single")[0].id)
        alice.unschedule("single")
        box.run_until_idle()
        found = everything(box.store)
    return as_json({table: [_plain(row) for row in kept] for table, kept in found.items() if kept})


VOLATILE = re.compile(
    r"File \".*?\", line \d+|0x[0-9a-f]+|[0-9a-f]{8}-[0-9a-f-]{27}"
    r"|(?<=\"started_at\":)\"[^\"]+\"|(?<=\"seconds\":)[\d.e-]+"
)


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    known = {name: value for name, value in row.items() if name != "failure_traceback"}
    return {name: VOLATILE.sub("…", str(value)) for name, value in known.items()}


def as_json(value: Any) -> str:
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False, default=str) + "\n"


RECORDED: dict[str, Callable[[], str]] = {
    "openapi.json": openapi,
    "help.txt": help_texts,
    "settings.json": settings,
    "events.json": events,
    "metrics.txt": metrics,
    "errors.json": errors,
    "values.json": values,
    "names.json": names,
    "rows.json": rows,
}


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, now in RECORDED.items():
        with redirect_stdout(io.StringIO()):
            text = now()
        (FOLDER / name).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
