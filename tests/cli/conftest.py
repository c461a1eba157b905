"""A deployment with something in it, and the command line in its folder."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headway.cli.target import load
from headway.testing import Sandbox
from tests.surface.test_cli import CommandLine, Result, headway

__all__ = ["headway"]

SHOP = """
from pydantic import BaseModel, Field

from headway import Group, Headway, every

hw = Headway("shop", database_url={url!r}, default_max_retries=1)

class Table(BaseModel):
    name: str
    password: str = Field("geheim", json_schema_extra={{"format": "password"}})

@hw.workflow
def load(table: Table) -> None:
    if table.name == "broken":
        raise ValueError("no rows \\x1b[31min it")

etl = Group("etl", max_active_jobs=2)
for number in range(4):
    table = Table(name="broken" if number % 2 else "fine")
    hw.schedule(load, f"load-{{number}}", table, every(hours=1), group=etl)
hw.schedule(load, "odd-[bold]", Table(name="fine"), group="odd")
"""


class Shop:
    """Runs commands on the database of the shop: two runs are done, two are dead-lettered."""

    def __init__(self, command: CommandLine, database_url: str) -> None:
        self.command = command
        self.database_url = database_url

    def __call__(self, *arguments: str) -> Result:
        return self.command(*arguments, "--database-url", self.database_url)

    def said(self, *arguments: str) -> str:
        """What a command that works prints."""
        code, out, err = self(*arguments)
        assert (code, err) == (0, "")
        return out

    def read(self, *arguments: str) -> Any:
        """The JSON it prints."""
        return json.loads(self.said(*arguments, "--json"))


@pytest.fixture
def shop(headway: CommandLine, database_url: str) -> Shop:
    headway.write("shop.py", SHOP.format(url=database_url))
    with Sandbox(load("shop:hw"), database_url=database_url) as box:
        box.run_until_idle()
    return Shop(headway, database_url)
