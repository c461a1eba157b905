"""The page about the REST API names every address and status, and its commands run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from headway.web import api
from headway.web.api.documented import answers_of
from tests.web.api.deployment import Deployment, deployed

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "rest.md"
TEXT = PAGE.read_text("utf-8")
COMMANDS = re.findall(r"```bash\n(.*?)```", TEXT, re.DOTALL)


def test_every_address_is_on_the_page_as_it_describes_itself() -> None:
    described = [
        f"| `{method} {route.path_format}` | {route.scope} | "
        f"{route.description.partition(chr(10))[0].strip()} |"
        for router in api.ROUTERS
        for route in router.declared()
        for method in route.methods or ()
        if route.include_in_schema
    ]
    shown = [line for line in TEXT.splitlines() if re.match(r"\| `[A-Z]+ /", line)]
    assert shown == described


def test_every_error_is_on_the_page() -> None:
    possible = {**answers_of("GET", "/{name}"), **answers_of("PATCH", "/{name}")}
    described = [
        f"| {status} | {told['description']} |"
        for status, told in sorted(possible.items())
        if int(status) >= 400
    ]
    assert [line for line in TEXT.splitlines() if re.match(r"\| [45]\d\d ", line)] == described


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_every_command_on_the_page_runs(tmp_path: Path) -> None:
    with deployed(f"sqlite:///{tmp_path / 'headway.db'}") as deployment:
        assert len(COMMANDS) >= 7
        for command in COMMANDS:
            done = run(command, deployment)
            assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
            assert done.stdout


def run(command: str, deployment: Deployment) -> subprocess.CompletedProcess[str]:
    known = {"HEADWAY": f"http://127.0.0.1:{deployment.site.port}", "TOKEN": "admin"}
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        env=os.environ | known,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
