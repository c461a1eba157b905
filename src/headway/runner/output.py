"""What a run returns, kept for whoever asks later."""

import json
import logging
from collections.abc import Callable
from typing import Any

from pydantic_core import to_jsonable_python

from headway.domain.text import describe_exception, printable, shown

MAX_OUTPUT_BYTES = 256_000
REASON_LIMIT = 300


def _as_it_is(plain: Any) -> Any:
    return plain


def kept(
    value: Any, logger: logging.Logger, redact: Callable[[Any], Any] = _as_it_is
) -> str | None:
    """The JSON text of what a run returned; None, with a warning in its log, if there is none.

    The work is done: that its result cannot be written down makes no failure of it. *redact*
    replaces the run's secrets in the plain data.

    >>> kept({"rows": 7}, logging.getLogger("headway.run.load"))
    '{"rows":7}'
    """
    try:
        plain = redact(to_jsonable_python(value))
        text = json.dumps(plain, separators=(",", ":"), allow_nan=False)
    except Exception as error:  # serializers of the user's types may raise anything
        logger.warning("output = %s is not kept: it is no JSON (%s)", shown(value), _words(error))
        return None
    if len(text) > MAX_OUTPUT_BYTES:
        logger.warning(
            "output of %d bytes is not kept: at most %d are; store it elsewhere and return where",
            len(text),
            MAX_OUTPUT_BYTES,
        )
        return None
    return text


def _words(error: Exception) -> str:
    return printable(describe_exception(error)[1], REASON_LIMIT)
