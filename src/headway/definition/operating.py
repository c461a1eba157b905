"""What a named person does to a running deployment: ``hw.operator("alice")``."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from headway.definition.acting import Acting
from headway.definition.cancelling import Cancelled
from headway.definition.operating_azolla import OperatedAzolla
from headway.definition.operating_letters import OperatedDeadLetters
from headway.definition.operating_tokens import OperatedTokens
from headway.definition.registry import Reference
from headway.definition.requests import request_page
from headway.definition.runtime import NOT_GIVEN, Runtime, may_be_id
from headway.domain.actions import Action
from headway.domain.idempotency import Answer, checked_key
from headway.domain.names import checked_name
from headway.store import idempotency
from headway.store.reading import depth
from headway.store.within import Transactions


class Operator:
    """The verbs of the application in somebody's name: each is noted in the audit, in the very
    transaction that does it. What fails leaves neither.

    >>> hw.operator("alice").trigger("extract-users")  # doctest: +SKIP
    7
    """

    def __init__(self, name: str, runtime: Runtime) -> None:
        self.name = checked_name("operator", name)
        self._runtime = runtime
        self._acting = Acting(self.name, runtime)
        self._act = self._acting.act

    @property
    def dead_letters(self) -> OperatedDeadLetters:
        """Dead letters, to be requeued or acknowledged in this person's name.

        >>> hw.operator("alice").dead_letters.requeue(7).success  # doctest: +SKIP
        True
        """
        return OperatedDeadLetters(self._acting)

    @property
    def azolla(self) -> OperatedAzolla:
        """Captures, objectives and parked events, in this person's name.

        >>> hw.operator("alice").azolla.capture("orders look too low")  # doctest: +SKIP
        """
        return OperatedAzolla(self._acting)

    @property
    def tokens(self) -> OperatedTokens:
        """Tokens, to be given and taken in this person's name.

        >>> hw.operator("alice").tokens.revoke("ci")  # doctest: +SKIP
        """
        return OperatedTokens(self._acting)

    @contextmanager
    def together(self) -> Iterator["Operator"]:
        """Several actions that are done together or not at all.

        >>> with hw.operator("alice").together() as alice:  # doctest: +SKIP
        ...     alice.disable("extract-users")
        ...     alice.cancel("extract-users")
        """
        with self._runtime.transactions.writing() as tx:
            yield Operator(self.name, self._runtime.within(tx))

    @contextmanager
    def once(self, key: str, digest: str) -> Iterator["Once"]:
        """A request that may be sent twice and is done once: what it does and what is answered are
        one transaction. Whoever sends it again meanwhile waits here.

        An error in the block, or no answer given in it, leaves nothing: the next one begins anew.

        >>> with hw.operator("alice").once("key-1", digest) as once:  # doctest: +SKIP
        ...     if once.answer is None:
        ...         entry = once.operator.trigger("extract-users")
        ...         once.answer = Answer(202, json.dumps({"entry": entry}))
        """
        checked = checked_key(key)
        with self._runtime.transactions.writing() as tx:
            answered = idempotency.begin(tx, self.name, checked, digest)
            within = self._runtime.within(tx)
            doing = Once(Operator(self.name, within), answered, within.transactions)
            yield doing
            if answered is None and doing.answer is not None:
                idempotency.finish(tx, self.name, checked, doing.answer)
            elif answered is None:
                idempotency.forget(tx, self.name, checked)

    def trigger(
        self,
        external_id: str,
        input: Any = NOT_GIVEN,
        *,
        delay: timedelta | None = None,
        max_attempts: int = 1,
    ) -> int:
        """Queue a run of a manifest; returns the entry's id.

        >>> hw.operator("alice").trigger("load", delay=timedelta(minutes=5))  # doctest: +SKIP
        7
        """
        return self._acting.queue(
            Action.TRIGGER,
            external_id,
            lambda on: on.trigger(external_id, input, delay=delay, max_attempts=max_attempts),
            lambda entry: {"entry": entry, "delay": delay, "other_input": _given(input)},
            f"in the group of {external_id!r}",
            lambda tx, most: depth.beside_manifest(tx, external_id, most),
        )

    def trigger_group(self, group: str) -> int:
        """Queue a run of every enabled manifest of a group, dependents aside; returns how many.

        >>> hw.operator("alice").trigger_group("nightly")  # doctest: +SKIP
        12
        """
        return self._acting.queue(
            Action.TRIGGER_GROUP,
            group,
            lambda on: on.trigger_group(group),
            lambda queued: {"queued": queued},
            f"in group {group!r}",
            lambda tx, most: depth.of_group(tx, group, most),
        )

    def enqueue(
        self, workflow: Reference, input: Any = None, *, priority: int = 0, max_attempts: int = 1
    ) -> int:
        """Queue a single run of a workflow without any manifest; returns the entry's id.

        >>> hw.operator("alice").enqueue("extract", "users")  # doctest: +SKIP
        7
        """
        return self._acting.queue(
            Action.ENQUEUE,
            self._runtime.name_of(workflow),
            lambda on: on.enqueue(workflow, input, priority=priority, max_attempts=max_attempts),
            lambda entry: {"entry": entry},
            "without a manifest",
            depth.of_nobody,
        )

    def rerun(self, execution: int, input: Any = NOT_GIVEN, *, max_attempts: int = 1) -> int:
        """Queue what an execution ran once more; returns the entry's id.

        >>> hw.operator("alice").rerun(17)  # doctest: +SKIP
        8
        """
        known = may_be_id(execution)
        return self._acting.queue(
            Action.RERUN,
            execution,
            lambda on: on.rerun(execution, input, max_attempts=max_attempts),
            lambda entry: {"entry": entry, "other_input": _given(input)},
            f"in the group of execution {execution}",
            lambda tx, most: depth.beside_execution(tx, execution, most) if known else 0,
        )

    def cancel(
        self,
        external_id: str | None = None,
        *,
        group: str | None = None,
        execution: int | None = None,
        entry: int | None = None,
        reason: str | None = None,
    ) -> Cancelled:
        """Cancel queued, pending and running work of a manifest, a group, an execution or an entry.

        >>> print(hw.operator("alice").cancel(execution=17, reason="wrong day"))  # doctest: +SKIP
        1 asked to stop
        """
        named = {
            Action.CANCEL_MANIFEST: external_id,
            Action.CANCEL_GROUP: group,
            Action.CANCEL_EXECUTION: execution,
            Action.CANCEL_ENTRY: entry,
        }
        given = {action: one for action, one in named.items() if one is not None}
        action, subject = next(iter(given.items()), (Action.CANCEL_MANIFEST, None))
        return self._act(
            action,
            subject,
            lambda on: on.cancelling.cancel(external_id, group, execution, entry, reason),
            lambda done: {
                "cancelled": done.cancelled,
                "requested": done.requested,
                "finished": done.finished,
                "reason": reason,
            },
        )

    def enable(self, external_id: str, *, expected: str | None = None) -> None:
        """Switch a manifest on.

        >>> hw.operator("alice").enable("extract-users")  # doctest: +SKIP
        """
        self._act(
            Action.ENABLE,
            external_id,
            lambda on: on.enable(external_id, expected=expected),
            lambda _: {},
        )

    def disable(self, external_id: str, *, expected: str | None = None) -> None:
        """Switch a manifest off until somebody enables it.

        >>> hw.operator("alice").disable("extract-users")  # doctest: +SKIP
        """
        self._act(
            Action.DISABLE,
            external_id,
            lambda on: on.disable(external_id, expected=expected),
            lambda _: {},
        )

    def set_group(
        self,
        group: str,
        *,
        max_active_jobs: int | None = NOT_GIVEN,
        priority: int = NOT_GIVEN,
        enabled: bool = NOT_GIVEN,
        expected: str | None = None,
    ) -> None:
        """Change a group's cap, priority or switch, if it has the version *expected*.

        >>> hw.operator("alice").set_group("nightly", max_active_jobs=2)  # doctest: +SKIP
        """
        named: dict[str, Any] = {
            "max_active_jobs": max_active_jobs,
            "priority": priority,
            "enabled": enabled,
        }
        values = {name: value for name, value in named.items() if value is not NOT_GIVEN}
        self._act(
            Action.SET_GROUP,
            group,
            lambda on: on.set_group(group, **values, expected=expected),
            lambda _: {"set": values},
        )

    def unschedule(self, external_id: str) -> None:
        """Remove a manifest softly: its history stays, its id is free again.

        >>> hw.operator("alice").unschedule("extract-users")  # doctest: +SKIP
        """
        self._act(
            Action.UNSCHEDULE, external_id, lambda on: on.unschedule(external_id), lambda _: {}
        )

    def request_manifest(self) -> str:
        """Ask for the page "where was I, across all deployments?"; returns the event's id.

        >>> hw.operator("alice").request_manifest()  # doctest: +SKIP
        'event-3f9a1c2b5d6e'
        """
        return self._act(
            Action.REQUEST_MANIFEST,
            self._runtime.application,
            lambda on: request_page(on),
            lambda event: {"event": event},
        )


@dataclass
class Once:
    """What is done once: by this operator, unless the *answer* is there already.

    *transactions* is where to read what it has done so far.
    """

    operator: Operator
    answer: Answer | None
    transactions: Transactions


def _given(input: Any) -> bool | None:
    return None if input is NOT_GIVEN else True
