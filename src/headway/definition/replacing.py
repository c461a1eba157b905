"""An application that acts on another database than its own: on that of a sandbox."""

from collections.abc import Callable
from dataclasses import dataclass

from headway.definition.explaining import Explaining
from headway.definition.runtime import Runtime
from headway.errors import HeadwayError
from headway.store.engine import Store


@dataclass(frozen=True)
class Replacement:
    """A replacement of an application's own database, in every thread of the process."""

    runtime: Runtime
    explaining: Explaining
    open_store: Callable[[], Store]


class SandboxedAlready(HeadwayError):
    """An application can be in one sandbox at a time.

    >>> print(SandboxedAlready("shop"))
    application 'shop' is in a sandbox already, and this one would hide it; leave that sandbox first
    """

    def __init__(self, name: str) -> None:
        super().__init__(
            f"application {name!r} is in a sandbox already, and this one would hide it; leave "
            "that sandbox first"
        )
