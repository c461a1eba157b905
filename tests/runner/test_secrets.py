"""Secrets of an input do not come back where a run is recorded, shown or logged."""

from __future__ import annotations

import copy
import json
import logging
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel, field_validator

from headway import Run, every
from headway.config import Settings
from headway.definition.inputs import InputType
from headway.domain.azolla.filters import PauseStateFilter
from headway.domain.execution import Execution, ExecutionState, Failure, Outcome
from headway.domain.masking import MASK
from headway.observe import Observer
from headway.runner.job_runner import JobRunner
from headway.runner.secrets import RunSecrets
from headway.store import objectives, substrate
from tests.builders import OWNER, Scene
from tests.runner.conftest import StartPool
from tests.runner.secret_jobs import PASSWORD, Hidden, Login, connect, connect_quickly

RAISING = (
    "message",
    "repr",
    "bytes",
    "json",
    "url",
    "form",
    "cause",
    "note",
    "group",
    "exit",
    "pydantic",
)
# Pieces that no text may hold, however the whole was quoted: of the password, then of the token.
PIECES = ("heim", "s3", "ß", "\\xc3\\x9f", "%C3%9F", "%c3%9f", "tok-", "efghij")


def account(way: str) -> Login:
    return Login.model_validate({"user": "ada", "password": PASSWORD, "way": way})


def all_of(execution: Execution) -> str:
    """Everything of a run that is shown anywhere, but for its input."""
    assert execution.failure is not None
    failure = execution.failure
    texts = (failure.step, failure.type, failure.message, failure.traceback, failure.summary)
    return "\n".join([*texts, str(execution.output), str(execution.progress_note)])


def quoted_lines_only(text: str) -> str:
    """A traceback without the source code of the jobs, which has the pieces in it."""
    return "\n".join(line for line in text.splitlines() if "secret_jobs.py" not in line)


def check_hidden(text: str) -> None:
    leaked = [piece for piece in PIECES if piece in quoted_lines_only(text)]
    assert not leaked, text


def run_once(scene: Scene, function: Callable[..., Any], way: str, **options: Any) -> Execution:
    scene.app.workflow("connect", steps=(function,), **options)
    scene.app.schedule("connect", "login", account(way), every(hours=1))
    scene.apply()
    scene.cycle()
    [execution] = scene.history.executions.all()
    return execution


@pytest.mark.parametrize("way", RAISING)
@pytest.mark.parametrize("function", [connect, connect_quickly])
def test_a_failure_does_not_quote_the_secrets_of_its_input(
    scene: Scene, function: Callable[..., Any], way: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        execution = run_once(scene, function, way)

    assert execution.state is ExecutionState.FAILED
    check_hidden(all_of(execution))
    assert MASK in all_of(execution)
    check_hidden(caplog.text)
    for event in scene.events.events:
        check_hidden(repr(event.fields))


@pytest.mark.parametrize("way", RAISING)
def test_the_short_way_keeps_them_to_itself_as_well(scene: Scene, way: str) -> None:
    scene.app.workflow("connect")(connect_quickly)
    account_now = scene.app.registry.find("connect").input_type.encode(account(way), "connect")
    scene.pending("connect", account_now)
    runner = JobRunner(scene.store, scene.app.registry, Observer(), OWNER, Settings())
    runner.run_once()
    runner.close()

    [execution] = scene.history.executions.all()
    check_hidden(all_of(execution))


def test_a_secret_of_one_character_leaves_the_text_readable(scene: Scene) -> None:
    execution = run_once(scene, connect, "message")

    assert execution.failure is not None
    assert execution.failure.message == f"refused {MASK} and {MASK}; attempt 1 of 11"
    assert re.search(r"line \d+, in fail", execution.failure.traceback)


def test_the_traceback_is_still_there(scene: Scene) -> None:
    execution = run_once(scene, connect, "cause")

    assert execution.failure is not None
    assert "The above exception was the direct cause" in execution.failure.traceback
    assert "RuntimeError: could not connect" in execution.failure.traceback


def test_a_dead_letter_does_not_tell_the_secrets(scene: Scene) -> None:
    scene.configure(default_max_retries=1)
    run_once(scene, connect, "message")
    for _ in range(2):
        scene.clock.advance(hours=2)
        scene.cycle()

    [letter] = scene.history.dead_letters.page().items
    check_hidden(repr(letter))
    check_hidden(repr(scene.history.dead_letters.detail(letter.id)))


def test_an_output_that_is_kept_has_its_secrets_masked(scene: Scene) -> None:
    execution = run_once(scene, connect, "return", keep_output=True)

    assert execution.state is ExecutionState.COMPLETED
    assert json.loads(execution.output or "") == {
        "password": MASK,
        "url": f"https://{MASK}@host",
        "rows": 11,
    }


def test_what_a_run_logs_and_reports_has_its_secrets_masked(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "headway"):
        execution = run_once(scene, connect, "return")

    [record] = [one for one in caplog.records if one.name == "headway.run.connect"]
    assert record.getMessage() == f"connecting with {MASK} and {MASK}"
    assert execution.progress_note == f"with {MASK}"


def test_what_a_run_hands_over_has_its_secrets_masked(scene: Scene) -> None:
    def ask(login: Login, run: Run) -> None:
        run.hand_over(f"try {login.token} by hand")

    with scene.store.writing() as tx:
        objectives.ensure_standing(tx, "tests", "tests")
    run_once(scene, ask, "return")
    with scene.store.reading() as tx:
        [found] = substrate.pause_states(tx, PauseStateFilter())
    assert found.prioritized_actions == (f"login: try {MASK} by hand",)


class Strict(BaseModel):
    key: Hidden

    @field_validator("key")
    @classmethod
    def check(cls, key: str) -> str:
        if key == "geheim":
            raise ValueError(f"{key} was stolen")
        if key == "gestohlen":
            raise KeyError(key)
        return key


@pytest.mark.parametrize(
    "stored",
    [
        '{"key": "geheim"}',
        '{"key": "gestohlen"}',
        '{"key": ["geheim"]}',
        '{"key": "geheim',
        '"geheim"',
        '{"kee": "geheim"}',
    ],
)
def test_an_input_that_no_longer_validates_is_not_quoted(scene: Scene, stored: str) -> None:
    def load(strict: Strict) -> None: ...

    scene.app.workflow("load")(load)
    scene.pending("load", stored)
    scene.run()

    [execution] = scene.history.executions.all()
    assert execution.failure is not None and execution.failure.step == "ValidateState"
    assert "geheim" not in all_of(execution)
    assert "gestohlen" not in all_of(execution)


def test_secrets_handed_to_a_dependent_are_not_quoted_either(scene: Scene) -> None:
    handed = "handed-to-the-child"

    def parent(run: Run) -> None:
        run.activate("child", {"key": handed})
        raise RuntimeError(f"told {handed} to the child")

    def child(strict: Strict) -> None: ...

    scene.app.workflow("parent")(parent)
    scene.app.workflow("child")(child)
    declared = scene.app.schedule("parent", "parent", None, every(hours=1))
    declared.include("child", "child", {"key": "another"}, dormant=True)
    scene.apply()
    scene.cycle()

    [execution] = scene.ended(ExecutionState.FAILED)
    assert execution.failure is not None
    assert execution.failure.message == f"told {MASK} to the child"
    assert handed not in execution.failure.traceback


def a_failure(text: str) -> Failure:
    return Failure("load", "ValueError", f"message {text}", f"traceback {text}")


def test_what_another_process_sends_is_redacted_of_what_was_handed_to_a_dependent() -> None:
    """The process of an isolated run has replaced what its own input declares."""
    secrets = RunSecrets(InputType(None), "null")
    completed = Outcome(ExecutionState.COMPLETED, None, '{"key":"geheim"}', ("try geheim",))
    failed = Outcome(ExecutionState.FAILED, a_failure("geheim"))

    secrets.hand_on(InputType(str), "geheim")
    assert secrets.outcome(completed) == completed, "not declared to be one"

    assert secrets.text("told geheim") == "told geheim"
    secrets.hand_on(InputType(Strict), Strict.model_construct(key="geheim"))
    assert secrets.text("told geheim") == f"told {MASK}"
    assert secrets.outcome(completed) == completed._replace(
        output=f'{{"key":"{MASK}"}}', hand_over=(f"try {MASK}",)
    )
    assert secrets.outcome(failed) == failed._replace(failure=a_failure(MASK))


def test_a_logger_of_a_run_without_secrets_is_the_ordinary_one() -> None:
    logger = logging.getLogger("headway.run.load")
    assert RunSecrets(InputType(str), '"users"').logger(logger) is logger


def test_a_redacting_logger_passes_on_what_its_own_logger_takes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    inner = logging.getLogger("headway.run.redacting")
    logger = RunSecrets(InputType(Strict), '{"key": "geheim"}').logger(inner)
    with caplog.at_level(logging.WARNING, inner.name):
        logger.info("not geheim enough")
        try:
            raise KeyError("geheim")
        except KeyError:
            logger.exception("told %s", "geheim", extra={"key": "geheim", "rows": 7})

    [record] = caplog.records
    assert (logger.name, logger.isEnabledFor(logging.INFO)) == (inner.name, False)
    assert (record.name, record.levelname) == (inner.name, "ERROR")
    assert record.getMessage() == f"told {MASK}"
    assert (vars(record)["key"], vars(record)["rows"]) == (MASK, 7)
    assert record.exc_info is None and record.exc_text is not None
    assert record.exc_text.endswith(f"KeyError: '{MASK}'")
    assert copy.copy(logger) is inner, "as pickle does it"


@pytest.mark.parametrize("way", ["message", "pydantic", "return"])
def test_isolated_runs_keep_them_to_themselves_as_well(
    scene: Scene, start_pool: StartPool, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    scene.app.workflow("connect", steps=(connect,), isolated=True, keep_output=True)
    scene.app.schedule("connect", "login", account(way), every(hours=1), timeout=timedelta(days=1))
    scene.apply()
    scene.manage()
    scene.dispatch()
    with caplog.at_level(logging.INFO):
        start_pool()
        wanted = "execution.completed" if way == "return" else "execution.failed"
        scene.events.wait_for(wanted)

    [execution] = scene.history.executions.all()
    if way == "return":
        check_hidden(str(execution.output))
        assert MASK in str(execution.output)
    else:
        check_hidden(all_of(execution))
    check_hidden(caplog.text)
    assert f"connecting with {MASK} and {MASK}" in caplog.text
