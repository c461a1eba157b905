"""Text that any database column and any terminal can hold: printable, bounded, never raising."""

import re
import traceback
from bisect import bisect_right
from itertools import accumulate

MESSAGE_LIMIT = 8 * 1024
TRACEBACK_LIMIT = 64 * 1024

_UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def printable(text: str, limit: int) -> str:
    r"""Return *text* with control characters and lone surrogates escaped, in at most *limit* chars.

    Newline and tab stay. Text that is too long keeps its head and tail around a marker that says
    how many characters of the original were cut.

    >>> printable("a\x00b", 100)
    'a\\x00b'
    >>> printable("x" * 1000, 40)
    'xxxxx [... 991 characters cut ...] xxxx'
    """
    if len(text) <= limit:
        escaped = _escape(text)
        if len(escaped) <= limit:
            return escaped
    room = limit - len(_marker(len(text)))
    if room < 2:
        return _fitting(text[:limit], limit)[0]
    head, head_taken = _fitting(text[: room - room // 2], room - room // 2)
    tail, tail_taken = _fitting_tail(text[-(room // 2) :], room // 2)
    return head + _marker(len(text) - head_taken - tail_taken) + tail


def shown(value: object, limit: int = 60) -> str:
    """Return ``repr(value)`` on one short line, for error messages; never raises.

    >>> shown("x" * 1000, 40)
    "'xxxx [... 993 characters cut ...] xxx'"
    """
    try:
        text = repr(value)
    except BaseException:
        text = f"<unprintable {type(value).__name__}>"
    return printable(text, limit).replace("\n", r"\n").replace("\t", r"\t")


def describe_exception(error: BaseException) -> tuple[str, str, str]:
    """Return the qualified type name, the message and the traceback with its causes.

    All three are printable and bounded, even when the exception's own ``__str__`` raises.

    >>> describe_exception(KeyError("user"))[:2]
    ('KeyError', "'user'")
    """
    name = _type_name(type(error))
    return (
        printable(name, 255),
        printable(_message(error), MESSAGE_LIMIT),
        printable(_traceback(error), TRACEBACK_LIMIT),
    )


def _message(error: BaseException) -> str:
    # User code runs here and may raise anything, SystemExit included; the record must survive it.
    try:
        return str(error)
    except BaseException:
        return f"<unprintable {type(error).__name__}>"


def _traceback(error: BaseException) -> str:
    try:
        return "".join(traceback.format_exception(error))
    except BaseException:
        return "".join(traceback.format_tb(error.__traceback__)) + _message(error)


def _type_name(kind: type[BaseException]) -> str:
    module = kind.__module__
    if module == "builtins" or not isinstance(module, str):
        return kind.__qualname__
    return f"{module}.{kind.__qualname__}"


def _marker(cut: int) -> str:
    return f" [... {cut} characters cut ...] "


def _escape(text: str) -> str:
    return _UNSAFE.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _fitting(text: str, room: int) -> tuple[str, int]:
    """Escape as much of the start of *text* as fits; also how many characters that took."""
    if not _UNSAFE.search(text):
        return text[:room], min(len(text), room)
    pieces = [_escape(character) for character in text]
    taken = bisect_right(list(accumulate(map(len, pieces))), room)
    return "".join(pieces[:taken]), taken


def _fitting_tail(text: str, room: int) -> tuple[str, int]:
    if not _UNSAFE.search(text):
        return text[-room:], min(len(text), room)
    pieces = [_escape(character) for character in text]
    taken = bisect_right(list(accumulate(map(len, reversed(pieces)))), room)
    return "".join(pieces[len(pieces) - taken :]), taken
