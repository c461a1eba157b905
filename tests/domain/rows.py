"""A manifest, an entry and an execution as tests of pure rules look at them: with few values."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from headway.domain.execution import Execution, ExecutionState
from headway.domain.manifest import ManifestDispatchView
from headway.domain.schedule import every
from headway.domain.work_queue import Source, WorkQueueEntry

NOON = datetime(2030, 1, 7, 12, tzinfo=UTC)  # a Monday
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


def a_view(key: int = 1, **changes: Any) -> ManifestDispatchView:
    """A manifest that runs every hour and is due at noon."""
    known: dict[str, Any] = {
        "manifest_id": key,
        "external_id": f"load-{key}",
        "workflow": "load",
        "input": "null",
        "input_type": "None",
        "schedule": every(hours=1),
        "enabled": True,
        "max_retries": None,
        "group_id": 3,
        "group_name": "users",
        "group_priority": 0,
        "group_enabled": True,
        "settled_until": NOON - HOUR,
        "wake_at": None,
        "kind": "interval",
        "declared_at": NOON - 9 * HOUR,
    }
    return ManifestDispatchView(**known | changes)


def an_entry(key: int = 7, **changes: Any) -> WorkQueueEntry:
    """An entry of a manifest of its own."""
    known: dict[str, Any] = {
        "id": key,
        "workflow": "load",
        "source": Source.SCHEDULE,
        "priority": 0,
        "created_at": NOON,
        "manifest_id": key,
        "group_id": 3,
        "external_id": f"load-{key}",
        "group_name": "users",
        "group_priority": 0,
        "group_max_active_jobs": None,
    }
    return WorkQueueEntry(**known | changes)


def an_execution(state: ExecutionState = ExecutionState.PENDING, **changes: Any) -> Execution:
    """A first attempt that nobody has started yet."""
    known: dict[str, Any] = {
        "id": 41,
        "entry_id": 7,
        "manifest_id": 1,
        "external_id": "load-users",
        "group_name": "users",
        "workflow": "load",
        "input": "null",
        "source": "schedule",
        "priority": 0,
        "attempt": 1,
        "crashes": 0,
        "state": state,
        "scheduled_for": NOON,
        "dispatched_at": NOON,
        "started_at": None,
        "finished_at": None,
        "owner": None,
        "cancel_requested": False,
        "running_step": None,
        "step_started_at": None,
        "progress": None,
        "progress_note": None,
        "failure": None,
        "output": None,
    }
    return Execution(**known | changes)
