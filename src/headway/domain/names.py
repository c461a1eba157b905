"""What may be a name: external ids, groups and workflow names share one rule."""

import unicodedata

from headway.domain.text import shown, storage_rule
from headway.errors import DefinitionError

NAME_LIMIT = 255

_ZERO_WIDTH_JOINER = "\u200d"
_EMOJI_CATEGORIES = frozenset({"So", "Sk", "Mn"})
_REFUSED_CATEGORIES = {
    "Cc": "must not contain control characters such as newline, tab or NUL",
    "Zl": "must not contain line separators",
    "Zp": "must not contain paragraph separators",
    "Cf": "must not contain invisible characters such as zero-width and text-direction marks",
    "Cs": "must not contain lone surrogates",
}


def checked_name(kind: str, value: object) -> str:
    """*value* in Unicode's composed form (NFC) if it may be a name, else an error saying why not.

    >>> checked_name("external_id", "extract-users/2024 🚀")
    'extract-users/2024 🚀'
    """
    if _is_plain(value):
        return str(value)
    if not isinstance(value, str):
        raise _refused(kind, value, "must be a string")
    # Rebuilt from its characters because a StrEnum member would be stored by its member name.
    name = unicodedata.normalize("NFC", "".join(value))
    if rule := _broken_rule(name):
        raise _refused(kind, value, rule)
    return name


def may_be_stored(value: object) -> bool:
    r"""Return whether *value* can be compared with stored names: nothing else is one of them.

    >>> may_be_stored("extract-users"), may_be_stored("\ud800"), may_be_stored(["extract-users"])
    (True, False, False)
    """
    return isinstance(value, str) and storage_rule(value) is None


def checked_words(field: str, text: str, example: str) -> str:
    """Return *text*, a free text such as a note, if every database can hold it.

    >>> checked_words("reason", "\\x00", "wrong day")
    Traceback (most recent call last):
    headway.errors.DefinitionError: reason = '\\x00': must not contain NUL (U+0000 at position 1); \
for example 'wrong day'
    """
    if rule := storage_rule(text):
        raise DefinitionError(f"{field} = {shown(text)}: {rule}; for example {shown(example)}")
    return text


def _is_plain(value: object) -> bool:
    """Whether *value* is a name made of ASCII alone, as nearly all are: seen without a loop."""
    return (
        type(value) is str
        and value.isascii()
        and value.isprintable()
        and 0 < len(value) <= NAME_LIMIT
        and value == value.strip()
    )


def _refused(kind: str, value: object, rule: str) -> DefinitionError:
    return DefinitionError(f"{kind} = {shown(value)}: {rule}; for example 'extract-users'")


def _broken_rule(name: str) -> str | None:
    if not name:
        return "must not be empty"
    if len(name) > NAME_LIMIT:
        return f"must have at most {NAME_LIMIT} characters, not {len(name)}"
    for position, character in enumerate(name):
        rule = _REFUSED_CATEGORIES.get(unicodedata.category(character))
        if rule and not _joins_emoji(name, position):
            return f"{rule} (U+{ord(character):04X} at position {position + 1})"
    return "must not start or end with whitespace" if name != name.strip() else None


def _joins_emoji(name: str, position: int) -> bool:
    """Whether the character is the joiner inside an emoji, its one honest use in a name."""
    return (
        name[position] == _ZERO_WIDTH_JOINER
        and 0 < position < len(name) - 1
        and unicodedata.category(name[position - 1]) in _EMOJI_CATEGORIES
        and unicodedata.category(name[position + 1]) == "So"
    )


def checked_id(kind: str, value: object) -> int:
    """Return *value* if it can be the id of a stored thing of this *kind*.

    >>> checked_id("dead letter", "seven")
    Traceback (most recent call last):
    headway.errors.DefinitionError: dead letter = 'seven': must be its id, a positive number; \
for example 7
    """
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 2**63:
        raise DefinitionError(
            f"{kind} = {shown(value)}: must be its id, a positive number; for example 7"
        )
    return value
