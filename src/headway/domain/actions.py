"""What people may do to a deployment, by the words the audit uses, and how it is told there."""

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from enum import StrEnum

from headway.domain.text import printable

TEXT_LIMIT = 200
LISTED = 50


class Action(StrEnum):
    """One kind of thing an operator does; what it is done to is the audit's subject."""

    TRIGGER = "manifest.trigger"
    ENABLE = "manifest.enable"
    DISABLE = "manifest.disable"
    UNSCHEDULE = "manifest.unschedule"
    CANCEL_MANIFEST = "manifest.cancel"
    TRIGGER_GROUP = "group.trigger"
    SET_GROUP = "group.set"
    CANCEL_GROUP = "group.cancel"
    ENQUEUE = "workflow.enqueue"
    RERUN = "execution.rerun"
    CANCEL_EXECUTION = "execution.cancel"
    CANCEL_ENTRY = "entry.cancel"
    REQUEUE = "dead_letter.requeue"
    ACKNOWLEDGE = "dead_letter.acknowledge"
    CAPTURE = "capture.add"
    PROCESS_CAPTURES = "capture.process"
    ADD_OBJECTIVE = "objective.add"
    UPDATE_OBJECTIVE = "objective.update"
    BLOCK_OBJECTIVE = "objective.block"
    RESOLVE_BLOCKER = "blocker.resolve"
    REQUEST_MANIFEST = "session_manifest.request"
    UNPARK = "event.unpark"
    CREATE_TOKEN = "token.create"
    REVOKE_TOKEN = "token.revoke"
    LOG_IN = "session.login"
    LOG_OUT = "session.logout"
    DENIED = "denied"


def detail_of(facts: Mapping[str, object]) -> str | None:
    """What the audit tells about an action beside its subject, as short JSON; None if nothing.

    Facts that were not given (None) are left out. Inputs are never among them: they may hold what
    only the job may see, and the entry named has them.

    >>> detail_of({"delay": timedelta(minutes=5), "entry": 7, "note": None})
    '{"delay": 300.0, "entry": 7}'
    >>> detail_of({"note": None}) is None
    True
    """
    told = {name: _told(value) for name, value in facts.items() if value is not None}
    return json.dumps(told) if told else None


def _told(value: object) -> object:
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_told(one) for one in value[:LISTED]]
    if isinstance(value, Mapping):
        return {str(name): None if one is None else _told(one) for name, one in value.items()}
    return printable(str(value), TEXT_LIMIT)
