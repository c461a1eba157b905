"""What one process needs to take part in the federation, from its application's settings."""

from headway.definition.app import Headway
from headway.domain.azolla.artifacts import SubstrateQuery, SubstrateQueryResponse
from headway.federation.building import entry_for
from headway.federation.membrane import Membrane
from headway.federation.peers import PeerClient
from headway.federation.registry import Registry, RegistryFile
from headway.federation.tick import Rules, WorkerEnv
from headway.federation.worker import ManifestSchedulerWorker, TickResult
from headway.store import objectives
from headway.store.engine import Store


class Participation:
    """The registry as it is now, and a Manifest Scheduler Worker that goes by it.

    >>> Participation(app, store).registry.own.id  # doctest: +SKIP
    'warehouse'
    """

    def __init__(self, app: Headway, store: Store) -> None:
        self._app = app
        self._store = store
        path = app.settings.azolla_registry
        self._file = RegistryFile(path, app.observer) if path else None

    @property
    def registry(self) -> Registry:
        """What the file says at this moment; without one this deployment is alone."""
        if self._file is not None:
            return self._file.current()
        with self._store.reading() as tx:
            return Registry.alone(objectives.own_azolla_id(tx) or self._app.name)

    def begin(self) -> None:
        """Give the deployment its standing objective; only the registry's id ever renames it."""
        named = None if self._file is None else self._file.current().own.id
        with self._store.writing() as tx:
            name = self._app.name
            objectives.ensure_standing(tx, named or name, name, rename=named is not None)

    def tick(self, owner: str) -> TickResult:
        """Deal with the oldest request that waits."""
        registry, settings = self.registry, self._app.settings
        asking = Asking(self._app, self._store, registry)
        env = WorkerEnv(
            store=self._store,
            observer=self._app.observer,
            owner=owner,
            azolla_id=registry.own.id,
            azollas=(registry.own.id, *sorted(registry.peers)),
            ask=asking.ask,
            rules=Rules(
                settings.azolla_claim_lease,
                settings.azolla_max_attempts,
                settings.azolla_query_budget,
                settings.azolla_manifest_budget,
            ),
            entry_of=entry_for,
        )
        return ManifestSchedulerWorker(env).run_once()


class Asking:
    """Asks a peer over HTTP, and this deployment itself without."""

    def __init__(self, app: Headway, store: Store, registry: Registry) -> None:
        self._own = registry.own.id
        self._membrane = Membrane(store, registry, app.observer)
        self._client = PeerClient(registry, app.settings.azolla_query_timeout)

    def ask(self, query: SubstrateQuery) -> tuple[SubstrateQueryResponse, str | None]:
        """The answer, and why if it is none."""
        if query.target_azolla_id == self._own:
            return self._membrane.read(query), None
        return self._client.query(query.target_azolla_id, query)
