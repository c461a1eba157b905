"""Asking for the operator's page, and saying who builds it."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar
from uuid import uuid4

from headway.definition.runtime import Runtime
from headway.definition.workflows import Workflows
from headway.domain.azolla.artifacts import Event, EventType
from headway.domain.azolla.ids import event_of
from headway.errors import DefinitionError
from headway.run import Run
from headway.steps import type_name
from headway.store import events, objectives

REQUEST_MANIFEST = "headway.request-manifest"
BY_HAND = Run(execution_id=0, workflow=REQUEST_MANIFEST)

B = TypeVar("B", bound=Callable[..., Any])


class Requests(Workflows, ABC):
    """The part of an application that asks for session manifests."""

    name: str
    manifest_builder: Callable[..., Any] | None

    def __init__(self) -> None:
        super().__init__()
        self.manifest_builder = None
        self.registry.offer(REQUEST_MANIFEST, self.request_manifest, Run)

    @property
    @abstractmethod
    def runtime(self) -> Runtime:
        """Where requests are written."""

    def request_manifest(self, run: Run = BY_HAND) -> str:
        """Ask for the page "where was I, across all deployments?"; returns the event's id.

        It is a workflow as well, so that every morning at eight is one line:

        >>> from headway import Headway, cron
        >>> hw = Headway("warehouse")
        >>> hw.schedule(hw.request_manifest, "morning-page", None, cron("0 8 * * *")).root
        'morning-page'
        """
        return request_page(self.runtime, run)

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


def request_page(runtime: Runtime, run: Run = BY_HAND) -> str:
    """Announce that somebody wants the page; returns the event's id.

    >>> request_page(hw.runtime)  # doctest: +SKIP
    'event-3f9a1c2b5d6e'
    """
    key = run.idempotency_key or str(uuid4())
    with runtime.transactions.writing() as tx:
        objectives.ensure_standing(tx, runtime.application, runtime.application)
        azolla_id = objectives.own_azolla_id(tx) or runtime.application
        event = Event(
            event_id=event_of(key),
            type=EventType.MANIFEST_REQUESTED,
            resource_id=azolla_id,
            azolla_id=azolla_id,
            created_at=tx.now,
        )
        events.announce(tx, event)
    return event.event_id
