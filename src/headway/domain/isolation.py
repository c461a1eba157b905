"""What a workflow asks for that wants a process of its own."""

from dataclasses import dataclass
from typing import Any

from pydantic import ByteSize, TypeAdapter, ValidationError

from headway.domain.text import shown
from headway.errors import DefinitionError

# Python with headway in it needs about this much before a job does anything.
SMALLEST = 64 * 1024 * 1024

_size = TypeAdapter(ByteSize)


@dataclass(frozen=True)
class Isolation:
    """A process of its own for every run, with at most *max_memory* bytes if given.

    >>> Isolation(max_memory=10**9)
    Isolation(max_memory=1000000000)
    """

    max_memory: int | None = None


def asked_for(isolated: Any, max_memory: Any) -> Isolation | None:
    """Read ``isolated=`` and ``max_memory=`` as a user wrote them.

    >>> asked_for(True, "512MiB")
    Isolation(max_memory=536870912)
    >>> asked_for(False, None) is None
    True
    """
    if not isinstance(isolated, bool):
        raise DefinitionError(
            f"isolated = {shown(isolated)}: must be True or False; for example isolated=True"
        )
    if max_memory is not None and not isolated:
        raise DefinitionError(
            f"max_memory = {shown(max_memory)}: needs a process of its own; write isolated=True "
            "beside it"
        )
    if not isolated:
        return None
    return Isolation(None if max_memory is None else _bytes(max_memory))


def _bytes(size: Any) -> int:
    try:
        number = int(_size.validate_python(size)) if not isinstance(size, bool) else 0
    except ValidationError:
        number = 0
    if number < SMALLEST:
        raise DefinitionError(
            f"max_memory = {shown(size)}: must be a number of bytes, or text with a unit, of at "
            "least 64MiB; for example '512MB'"
        )
    return number
