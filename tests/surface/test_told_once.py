"""Sentences of errors: no full stop before what follows, and the option that was meant."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from enum import Enum
from typing import Annotated, Any, get_args

import pytest
import typer.main
from pydantic import AfterValidator, BaseModel

from headway.cli import app
from headway.cli.narration import Narrator
from headway.definition.inputs import InputType
from headway.errors import InputError
from headway.observe import Event
from tests.surface.test_cli import CommandLine, assert_brief, headway

__all__ = ["headway"]

STOPPED = re.compile(r"\.['\"]?;")


def commands(command: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every command with the words that call it."""
    command = command or typer.main.get_command(app)
    for name, one in getattr(command, "commands", {}).items():
        yield from commands(one, (*path, name))
    if not getattr(command, "commands", {}):
        yield path, command


def takes_no_text(kind: Any) -> bool:
    """Whether values are numbers or words of an enumeration; lists of them are alike."""
    [kind] = get_args(kind) or (kind,)
    return isinstance(kind, type) and kind is not bool and issubclass(kind, int | float | Enum)


def refused() -> Iterator[tuple[str, ...]]:
    """Every option and argument that takes no free text, with a value it cannot take."""
    for path, command in commands():
        for one in command.params:
            if takes_no_text(one.type_descriptor.annotation):
                named = () if one.param_type_name == "argument" else (max(one.opts, key=len),)
                yield (*path, *named, "no-such-value")


def test_no_message_goes_on_after_a_full_stop(headway: CommandLine) -> None:
    wrong = list(refused())
    assert len(wrong) > 40
    for arguments in wrong:
        code, _, err = headway(*arguments)
        assert code == 2, arguments
        assert not STOPPED.search(err), err


def ends_with_a_full_stop(name: str) -> str:
    raise ValueError("This name is taken.")


class Table(BaseModel):
    name: Annotated[str, AfterValidator(ends_with_a_full_stop)]


def test_the_rule_of_a_validator_may_end_with_a_full_stop() -> None:
    with pytest.raises(InputError) as refused:
        InputType(Table).encode({"name": "users"}, "load")
    assert "This name is taken; for example" in str(refused.value)


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("groups", "set", "etl", "--max-active-jobs", "3"), "--cap"),
        (("groups", "set", "etl", "--max_active_jobs=3"), "--cap"),
        (("groups", "set", "etl", "--priorty", "3"), "--priority"),
        (("run", "shop:hw", "--process", "3"), "--processes"),
    ],
)
def test_an_option_that_does_not_exist_suggests_one(
    headway: CommandLine, arguments: tuple[str, ...], meant: str
) -> None:
    code, out, err = headway(*arguments)
    assert (code, out) == (2, "")
    assert f"; did you mean {meant}?" in err
    assert_brief(err)


def test_log_lines_of_an_ad_hoc_run_name_its_workflow_run_and_entry(
    caplog: pytest.LogCaptureFixture,
) -> None:
    known = {"external_id": None, "workflow": "load", "execution_id": 12}
    narrator = Narrator()
    with caplog.at_level(logging.INFO, "headway.cli"):
        narrator(Event("execution.started", {**known, "entry_id": 7}))
        narrator(Event("execution.failed", {**known, "failure": "load: ValueError: no rows"}))
        narrator(Event("execution.stuck", known))
        narrator(Event("execution.started", {**known, "external_id": "load-users", "entry_id": 7}))

    started, failed, stuck, of_manifest = [one.getMessage() for one in caplog.records]
    assert started.endswith(" load #12 (ad-hoc run of entry 7)")
    assert " load #12 (ad-hoc run of entry 7) after " in failed
    assert " load #12 (ad-hoc run) does not stop" in stuck
    assert of_manifest.endswith(" load-users #12")


def test_what_has_ended_is_no_longer_counted_as_running() -> None:
    narrator = Narrator()
    for number in (7, 8):
        narrator(Event("execution.started", {"execution_id": number, "external_id": "load"}))
    for name, number in (("completed", 7), ("handed_back", 8)):
        narrator(Event(f"execution.{name}", {"execution_id": number, "external_id": "load"}))
        assert narrator.running == 8 - number
