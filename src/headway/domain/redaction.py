r"""Secrets in texts: messages, tracebacks, log lines and outputs that quote a known value.

The values come from ``domain/masking.py``. A value is found as it is, in the escapes of Python and
JSON, and encoded for URLs; across line breaks and indentation; and where a ``...`` has cut it off,
as in pydantic's ``input_value=``. The lines of a value of several lines count one by one, too.

Short values need care: a PIN of ``1`` is part of most texts.

* A value of :data:`SHORTEST` or more characters is replaced wherever it stands, also in a word.
* A shorter one is replaced only if quotation marks enclose it, or ``input_value=`` precedes it.
* Empty and blank values, ``True``, ``False`` and ``None`` are never replaced.
* A remainder of fewer than :data:`SHORTEST_PIECE` characters at a ``...`` stays.
"""

import json
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any
from urllib.parse import quote, quote_plus

from headway.domain.masking import MASK

SHORTEST = 4
SHORTEST_PIECE = 3
SHORTEST_LINE = 8

_CUT = re.compile(r"\.{3,}|…| \[\.\.\. \d+ characters cut \.\.\.\] ")
_PERCENT = re.compile(r"%[0-9A-F]{2}")
_SPACE = re.compile(r"\s+")
# What may stand between two words of a secret: indentation, and the margin of exception groups.
_GAP = r"[\s|]+"


class Redaction:
    """Replaces *secrets* in texts by a mask; ``redact.text(message)``.

    >>> Redaction(["geheim"]).text("login as ada with 'geheim' failed")
    "login as ada with '********' failed"
    >>> Redaction(["1"]).text("PIN '1' refused, attempt 1 of 11")
    "PIN '********' refused, attempt 1 of 11"
    """

    def __init__(self, secrets: Iterable[Any] = ()) -> None:
        self._values = {one for secret in secrets for one in _texts(secret)}

    def __bool__(self) -> bool:
        return bool(self._values)

    def __or__(self, other: "Redaction") -> "Redaction":
        return Redaction([*self._values, *other._values])

    def text(self, text: str) -> str:
        """*text* with every secret in it replaced."""
        if not self._values:
            return text
        for form in self._plain:
            text = text.replace(form, MASK)
        for pattern in self._patterns:
            text = pattern.sub(MASK, text)
        return self._without_pieces(text)

    def plain(self, value: Any) -> Any:
        """Plain data with every secret in its texts replaced, keys included.

        >>> Redaction(["geheim", "4711"]).plain({"url": "ada:geheim@host", "pin": 4711, "rows": 2})
        {'url': 'ada:********@host', 'pin': '********', 'rows': 2}
        """
        if not self._values:
            return value
        if isinstance(value, str):
            return MASK if value.strip() in self._values else self.text(value)
        if isinstance(value, dict):
            return {self.plain(key): self.plain(part) for key, part in value.items()}
        if isinstance(value, list | tuple):
            return [self.plain(part) for part in value]
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return MASK if is_number and str(value) in self._values else value

    @cached_property
    def _forms(self) -> list[str]:
        """Every spelling of every value that is long enough, the longest first."""
        found = {form for value in self._values if len(value) >= SHORTEST for form in _forms(value)}
        # A value of asterisks only would be replaced in its own mask.
        return sorted((form for form in found if form.strip("*")), key=lambda one: (-len(one), one))

    @cached_property
    def _plain(self) -> list[str]:
        return [form for form in self._forms if not _SPACE.search(form)]

    @cached_property
    def _patterns(self) -> list[re.Pattern[str]]:
        found = [
            re.compile(_GAP.join(map(re.escape, _SPACE.split(form))))
            for form in self._forms
            if _SPACE.search(form)
        ]
        short = sorted(
            {form for one in self._values if len(one) < SHORTEST for form in _forms(one)}
        )
        if short:
            any_of = "|".join(map(re.escape, short))
            found.append(re.compile(rf"(?<=['\"])(?:{any_of})(?=['\"])"))
            found.append(re.compile(rf"(?<=input_value=)(?:{any_of})(?=[,\s\]])"))
        return found

    def _without_pieces(self, text: str) -> str:
        """*text* without the ends of secrets that were cut in the middle."""
        cuts = list(_CUT.finditer(text))
        if not cuts:
            return text
        pieces = []
        done = 0
        for number, cut in enumerate(cuts):
            following = cuts[number + 1].start() if number + 1 < len(cuts) else len(text)
            start = cut.start() - self._begun(text[done : cut.start()])
            end = cut.end() + self._ended(text[cut.end() : following])
            pieces.append(text[done:start])
            pieces += [MASK] if start < cut.start() else []
            pieces.append(cut.group())
            pieces += [MASK] if end > cut.end() else []
            done = end
        return "".join([*pieces, text[done:]])

    def _begun(self, before: str) -> int:
        """How many characters at the end of *before* are the beginning of a secret."""
        return max((_overlap(form, before[-len(form) :]) for form in self._forms), default=0)

    def _ended(self, after: str) -> int:
        """How many characters at the start of *after* are the end of a secret."""
        turned = ((form[::-1], after[: len(form)][::-1]) for form in self._forms)
        return max((_overlap(form, window) for form, window in turned), default=0)


def _overlap(form: str, window: str) -> int:
    """The length of the longest beginning of *form* that *window* ends with."""
    begin = form[:SHORTEST_PIECE]
    place = window.find(begin)
    while place >= 0:
        if form.startswith(window[place:]):
            return len(window) - place
        place = window.find(begin, place + 1)
    return 0


def _texts(secret: Any) -> Iterator[str]:
    """The texts that stand for one secret value; none for what says nothing."""
    if secret is None or isinstance(secret, bool):
        return
    if isinstance(secret, bytes):
        secret = secret.decode(errors="replace")
    try:
        text = str(secret).strip()
    except Exception:  # of the user's types
        return
    if text:
        yield text
        lines = [line.strip() for line in text.splitlines()]
        if len(lines) > 1:
            yield from (line for line in lines if len(line) >= SHORTEST_LINE)


def _forms(value: str) -> Iterator[str]:
    """The spellings in which messages quote *value*."""
    written = {value, repr(value)[1:-1], repr(value.encode(errors="replace"))[2:-1]}
    written |= {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
    written |= {form.replace("'", r"\'") for form in list(written) if r"\'" not in form}
    written |= {repr(form)[1:-1] for form in list(written)}
    written |= {json.dumps(form)[1:-1] for form in list(written)}
    yield from written
    encoded = value.encode(errors="replace")
    for form in (quote(encoded, safe=""), quote(encoded), quote_plus(encoded)):
        yield form
        yield _PERCENT.sub(lambda found: found.group().lower(), form)
