"""The example of the guide, tried as a new user would: one program, two commands."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from headway.history import History
from headway.store.engine import Store
from headway.store.migrate import migrate
from tests.brokers import Broker
from tests.builders import eventually
from tests.surface.test_readme import ROOT, blocks

GUIDE = ROOT / "docs" / "guides" / "celery.md"
PROGRAM = ROOT / "examples" / "celery" / "warehouse.py"


def shown_commands() -> list[list[str]]:
    commands = [text.removeprefix("$ ").split() for text in blocks(GUIDE, "console")]
    return [[str(Path(sys.executable).parent / command[0]), *command[1:]] for command in commands]


def test_the_guide_shows_the_example_as_it_is() -> None:
    [shown] = [text for text in blocks(GUIDE, "python") if text.startswith("# examples/")]
    name, code = shown.split("\n", 1)
    assert name == "# examples/celery/warehouse.py"
    assert PROGRAM.read_text("utf-8").endswith(f'"""\n\n{code}')


def test_two_commands_run_it(redis_broker: Broker, tmp_path: Path) -> None:
    shutil.copy(PROGRAM, tmp_path)
    url = f"sqlite:///{tmp_path / 'headway.db'}"
    store = Store(url)
    migrate(store)
    environment = {key: os.environ[key] for key in ("PATH", "HOME", "LANG") if key in os.environ}
    environment |= {"BROKER_URL": redis_broker.url.replace("/0", "/5")}
    commands = shown_commands()
    assert [Path(command[0]).name for command in commands] == ["celery", "headway"]
    with ExitStack() as closing:
        closing.callback(store.close)
        for number, command in enumerate(commands):
            log = closing.enter_context((tmp_path / f"log-{number}").open("wb"))
            process = subprocess.Popen(
                command, cwd=tmp_path, env=environment, stdout=log, stderr=log
            )
            closing.callback(process.wait, 60)
            closing.callback(process.terminate)
        history = History(store)

        def all_checked() -> bool:
            done = {one.external_id for one in history.executions.all() if one.state == "completed"}
            return {"check-orders", "check-users"} <= done

        eventually(all_checked)
        went = {one.external_id: one.task_server for one in history.executions.all()}

    assert went["extract-orders"] == went["extract-users"] == "celery"
    assert went["check-orders"] == went["check-users"] == "local"
    worker, headway = ((tmp_path / f"log-{number}").read_text("utf-8") for number in (0, 1))
    assert len(re.findall(r"ForkPoolWorker-\d\] extracting (orders|users)", worker)) == 2
    assert len(re.findall("checking (orders|users)", headway)) == 2
