"""The secrets of one run: of its input, and of the inputs it has given to its dependents.

Every text that leaves a run goes through here: failures, outputs, notes and log records. Nothing is
looked for unless a text is there and the input's type declares secrets.
"""

import json
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from headway.definition.inputs import InputType
from headway.domain.execution import Outcome
from headway.domain.redaction import Redaction

# What logging itself notes of a record, none of which quotes anything.
_OWN = logging.makeLogRecord({}).__dict__.keys() - {"msg", "exc_text", "stack_info"}


class RunSecrets:
    """Replaces the secrets of a run; *text* is its stored input, *value* the one it was read as.

    >>> RunSecrets(InputType(str), '"users"').text("no table users")
    'no table users'
    """

    def __init__(self, input_type: InputType, text: str, value: Any = None) -> None:
        self._input_type = input_type
        self._stored = text
        self._value = value
        self._handed_on: list[tuple[InputType, Any]] = []
        self._redaction: Redaction | None = None

    def hand_on(self, input_type: InputType, value: Any) -> None:
        """Count the secrets of *value*, which the run gives to a dependent, as its own."""
        if input_type.secrets.declared:
            self._handed_on.append((input_type, value))
            self._redaction = None

    def text(self, text: str) -> str:
        """*text* without the secrets."""
        return self._known().text(text)

    def plain(self, value: Any) -> Any:
        """Plain data without the secrets."""
        return self._known().plain(value)

    def outcome(self, outcome: Outcome) -> Outcome:
        """An *outcome* that another process has redacted, without what only this one knows of."""
        if not self._handed_on:
            return outcome
        failure, output = outcome.failure, outcome.output
        if failure is not None:
            message, traceback = self.text(failure.message), self.text(failure.traceback)
            failure = replace(failure, message=message, traceback=traceback)
        if output is not None:
            output = json.dumps(self.plain(json.loads(output)), separators=(",", ":"))
        hand_over = tuple(map(self.text, outcome.hand_over))
        return outcome._replace(failure=failure, output=output, hand_over=hand_over)

    def logger(self, logger: logging.Logger) -> logging.Logger:
        """*logger*, or one that passes its records on to it without the secrets."""
        return RedactingLogger(logger, self.text) if self._input_type.secrets.declared else logger

    def _known(self) -> Redaction:
        if self._redaction is None:
            found = self._input_type.redaction_of(self._stored, self._value)
            for input_type, value in self._handed_on:
                found |= input_type.secrets.redaction_of(value)
            self._redaction = found
        return self._redaction


class RedactingLogger(logging.Logger):
    """Passes records on to *inner* with every text in them redacted."""

    def __init__(self, inner: logging.Logger, redact: Callable[[str], str]) -> None:
        super().__init__(inner.name)
        self.parent = inner
        self._redact = redact

    def __reduce__(self) -> tuple[Any, ...]:
        return logging.getLogger, (self.name,)

    def isEnabledFor(self, level: int) -> bool:
        """Whether *inner* takes records of this level."""
        assert self.parent is not None
        return self.parent.isEnabledFor(level)

    def handle(self, record: logging.LogRecord) -> None:
        """Have *inner* handle the record."""
        assert self.parent is not None
        self.parent.handle(redacted(record, self._redact))


def redacted(record: logging.LogRecord, redact: Callable[[str], str]) -> logging.LogRecord:
    """*record* with its message, its traceback and its extra texts redacted.

    >>> record = logging.makeLogRecord({"msg": "key %s", "args": ("geheim",)})
    >>> redacted(record, Redaction(["geheim"]).text).getMessage()
    'key ********'
    """
    told = dict(record.__dict__, msg=record.getMessage(), args=None)
    if record.exc_info:
        told |= {"exc_text": logging.Formatter().formatException(record.exc_info), "exc_info": None}
    texts = {key: text for key, text in told.items() if isinstance(text, str) and key not in _OWN}
    return logging.makeLogRecord(told | {key: redact(text) for key, text in texts.items()})
