"""Server processes."""

from headway.domain.views import ServerOverview
from headway.store.engine import Store
from headway.store.reading import servers


class Servers:
    """The processes of this deployment, with their leases.

    >>> [server.host for server in History(store).servers.all()]  # doctest: +SKIP
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def all(self) -> list[ServerOverview]:
        """Every process that has a row, oldest first."""
        with self._store.reading() as tx:
            return servers.list_servers(tx)
