"""Text that any database column and any terminal can hold: printable, bounded, never raising."""

import re
import traceback
from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate

MESSAGE_LIMIT = 8 * 1024
TRACEBACK_LIMIT = 64 * 1024

# PostgreSQL stores no NUL and UTF-8 has no form for half of a surrogate pair.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_CONTROLS = r"\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff"
_UNSAFE = re.compile(f"[{_CONTROLS}]")
# Characters without a width that change the order in which a terminal shows those around them.
_UNSAFE_ON_TERMINALS = re.compile(f"[{_CONTROLS}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def printable(text: str, limit: int, unsafe: re.Pattern[str] = _UNSAFE) -> str:
    r"""Return *text* with control characters and lone surrogates escaped, in at most *limit* chars.

    Newline and tab stay. Text that is too long keeps its head and tail around a marker that says
    how many characters of the original were cut.

    >>> printable("a\x00b", 100)
    'a\\x00b'
    >>> printable("x" * 1000, 40)
    'xxxxx [... 991 characters cut ...] xxxx'
    """
    if len(text) <= limit:
        escaped = _escape(text, unsafe)
        if len(escaped) <= limit:
            return escaped
    room = limit - len(_marker(len(text)))
    if room < 2:
        return _fitting(text[:limit], limit, unsafe)[0]
    head, head_taken = _fitting(text[: room - room // 2], room - room // 2, unsafe)
    tail, tail_taken = _fitting_tail(text[-(room // 2) :], room // 2, unsafe)
    return head + _marker(len(text) - head_taken - tail_taken) + tail


def for_terminal(text: str, limit: int) -> str:
    r"""Return *text* as :func:`printable`, with marks of text direction escaped as well.

    Stored text keeps these marks, because right-to-left languages need them. In a terminal they
    could show a name or a message as another one.

    >>> for_terminal("a\u202eb", 100)
    'a\\u202eb'
    """
    return printable(text, limit, _UNSAFE_ON_TERMINALS)


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


def storage_rule(text: str) -> str | None:
    r"""Return the rule that *text* breaks if it cannot be stored and shown everywhere, else None.

    >>> storage_rule("a\x00b")
    'must not contain NUL (U+0000 at position 2)'
    >>> storage_rule("東京 🚀") is None
    True
    """
    if text.isascii() and "\x00" not in text:
        return None
    found = _UNSTORABLE.search(text)
    if found is None:
        return None
    kind = "NUL" if found.group() == "\x00" else "lone surrogates"
    return f"must not contain {kind} (U+{ord(found.group()):04X} at position {found.start() + 1})"


def encodable(text: str) -> str:
    r"""Return *text* with NUL and lone surrogates escaped; everything else stays as it is.

    >>> encodable("a\x00\n\ud800")
    'a\\x00\n\\ud800'
    """
    return text if storage_rule(text) is None else _UNSTORABLE.sub(_escaped, text)


def clause(sentence: str) -> str:
    """*sentence* without its full stop, for messages that go on after it.

    >>> clause("must be even."), clause("and so on...")
    ('must be even', 'and so on...')
    """
    return sentence if sentence.endswith("..") else sentence.removesuffix(".")


def describe_exception(
    error: BaseException, redact: Callable[[str], str] = str
) -> tuple[str, str, str]:
    """Return the qualified type name, the message and the traceback with its causes.

    All three are printable and bounded, even when the exception's own ``__str__`` raises. *redact*
    sees message and traceback before they are cut, because half a secret is hard to recognize.

    >>> describe_exception(KeyError("user"))[:2]
    ('KeyError', "'user'")
    """
    name = _type_name(type(error))
    return (
        printable(name, 255),
        printable(redact(_message(error)), MESSAGE_LIMIT),
        printable(redact(_traceback(error)), TRACEBACK_LIMIT),
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


def _escape(text: str, unsafe: re.Pattern[str]) -> str:
    return unsafe.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _fitting(text: str, room: int, unsafe: re.Pattern[str]) -> tuple[str, int]:
    """Escape as much of the start of *text* as fits; also how many characters that took."""
    if not unsafe.search(text):
        return text[:room], min(len(text), room)
    pieces = [_escape(character, unsafe) for character in text]
    taken = bisect_right(list(accumulate(map(len, pieces))), room)
    return "".join(pieces[:taken]), taken


def _fitting_tail(text: str, room: int, unsafe: re.Pattern[str]) -> tuple[str, int]:
    if not unsafe.search(text):
        return text[-room:], min(len(text), room)
    pieces = [_escape(character, unsafe) for character in text]
    taken = bisect_right(list(accumulate(map(len, reversed(pieces)))), room)
    return "".join(pieces[len(pieces) - taken :]), taken
