"""Asking for the operator's page, and saying who builds it."""

from collections.abc import Callable
from typing import Any, TypeVar
from uuid import uuid4

from headway.definition.runtime import Runtime
from headway.definition.workflows import Workflows
from headway.domain.azolla.artifacts import Event, EventType, ObjectiveType
from headway.domain.azolla.filters import ObjectiveFilter
from headway.domain.azolla.ids import event_of
from headway.errors import DefinitionError, HeadwayError
from headway.run import Run
from headway.steps import type_name
from headway.store import events, substrate

REQUEST_MANIFEST = "headway.request-manifest"
BY_HAND = Run(execution_id=0, workflow=REQUEST_MANIFEST)

B = TypeVar("B", bound=Callable[..., Any])


class Requests(Workflows):
    """The part of an application that asks for session manifests."""

    manifest_builder: Callable[..., Any] | None

    def __init__(self) -> None:
        super().__init__()
        self.manifest_builder = None
        self.registry.offer(REQUEST_MANIFEST, self.request_manifest, Run)

    @property
    def runtime(self) -> Runtime:
        """Where requests are written."""
        raise NotImplementedError

    def request_manifest(self, run: Run = BY_HAND) -> str:
        """Ask for the page "where was I, across all deployments?"; returns the event's id.

        It is a workflow as well, so that every morning at eight is one line:

        >>> from headway import Headway, cron
        >>> hw = Headway("warehouse")
        >>> hw.schedule(hw.request_manifest, "morning-page", None, cron("0 8 * * *")).root
        'morning-page'
        """
        key = run.idempotency_key or str(uuid4())
        with self.runtime.store.writing() as tx:
            own = substrate.objectives(
                tx, ObjectiveFilter(objective_type=(ObjectiveType.STANDING,), limit=1)
            )
            if not own:
                raise HeadwayError(
                    "this deployment has never been started, so it has no standing objective; "
                    "start it once: headway run"
                )
            event = Event(
                event_id=event_of(key),
                type=EventType.MANIFEST_REQUESTED,
                resource_id=own[0].azolla_id,
                azolla_id=own[0].azolla_id,
                created_at=tx.now,
            )
            events.announce(tx, event)
        return event.event_id

    def builds_manifests(self, function: B) -> B:
        """Build session manifests with *function* instead of headway's own builder.

        It takes the context snapshot and returns a :class:`Page`, or a text whose first lines say
        what to do first. It may be async, and has ``azolla_manifest_budget`` to come to an end.

        >>> from headway import Headway
        >>> hw = Headway("warehouse")
        >>> @hw.builds_manifests
        ... def ask_a_model(snapshot):
        ...     return f"read {len(snapshot.full_prompt_text)} characters yourself"
        """
        if not callable(function):
            raise DefinitionError(
                f"hw.builds_manifests takes a function, not {type_name(type(function))}; write "
                "@hw.builds_manifests above def build(snapshot)"
            )
        self.manifest_builder = function
        return function
