"""An application that acts on another database than its own: on that of a sandbox."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from headway.definition.explaining import Explaining
from headway.definition.runtime import Runtime
from headway.errors import HeadwayError
from headway.store.engine import Clock, Store
from headway.store.joining import check_same_database
from headway.store.transaction import Transaction


class SandboxStore(Store):
    """The database of a sandbox, which a caller's connection must lead to as well.

    >>> SandboxStore("sqlite:///sandbox.db", clock)  # doctest: +SKIP
    """

    def __init__(self, address: str, clock: Clock) -> None:
        super().__init__(address, clock=clock, durable=False)

    def joining(self, connection: Any) -> Transaction:
        """The caller's transaction; refused if it is one on another database, such as the
        application's own."""
        check_same_database(self.url, connection)
        return super().joining(connection)


@dataclass(frozen=True)
class SandboxAddress:
    """The sandbox of an application at one virtual time, as another process finds it."""

    application: str
    url: str
    now: datetime


_addresses: dict[str, SandboxAddress] = {}


def act_on_sandbox(address: SandboxAddress) -> None:
    """Have the application of that name act on the sandbox in this process, until it ends.

    For the process of an isolated run, which imports the application itself.
    """
    _addresses[address.application] = address


def open_of_a_sandbox(application: str) -> Store | None:
    """Return the sandbox's database if this process runs a job of that application's sandbox.

    >>> open_of_a_sandbox("shop") is None
    True
    """
    address = _addresses.get(application)
    return None if address is None else SandboxStore(address.url, lambda: address.now)


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
