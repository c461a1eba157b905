"""Applications in the current folder, as a shell offers them when somebody presses Tab."""

import re
from contextlib import suppress
from pathlib import Path

MADE = re.compile(r"^(\w+)\b[^=\n]*=\s*Headway\(", re.M)


def applications(incomplete: str) -> list[str]:
    """``module:app`` of each file here that makes a Headway; none of them is imported for that.

    >>> applications("no-such-file")
    []
    """
    found = [f"{file.stem}:{name}" for file in sorted(Path().glob("*.py")) for name in _made(file)]
    return [one for one in found if one.startswith(incomplete)]


def _made(file: Path) -> list[str]:
    with suppress(OSError):
        return MADE.findall(file.read_text("utf-8", "replace")) if file.stem.isidentifier() else []
    return []
