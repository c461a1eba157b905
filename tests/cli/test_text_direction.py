"""Marks of text direction in stored text are escaped on the terminal."""

import pytest

from headway import Headway, every
from headway.testing import Sandbox
from tests.surface.test_cli import CommandLine

MARKS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


@pytest.mark.parametrize("arguments", [("list",), ("show", "1")], ids=" ".join)
def test_marks_in_a_failure_are_shown_escaped(
    headway: CommandLine, arguments: tuple[str, ...]
) -> None:
    hw = Headway("marks")

    @hw.workflow
    def fail() -> None:
        raise ValueError(f"a{MARKS}b")

    hw.schedule(fail, "fail", schedule=every(hours=1))
    url = f"sqlite:///{headway.folder / 'headway.db'}"
    with Sandbox(hw, database_url=url) as box:
        box.run_until_idle()
    code, out, _ = headway("executions", *arguments, "--database-url", url)

    assert code == 0
    assert not set(out) & set(MARKS)
    assert r"a\u061c\u200e\u200f\u202a" in out
