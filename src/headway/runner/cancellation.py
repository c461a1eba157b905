"""Stopping runs of this process at once, beside the flag in the database."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any

from headway.domain.lease_time import LeaseTime
from headway.errors import JobCancelled


class StopReason(StrEnum):
    """Why a run was asked to stop; it decides what becomes of the attempt."""

    REQUESTED = "requested"
    TIMEOUT = "timeout"
    SHUTDOWN = "shutdown"
    NOT_OURS = "not_ours"
    CUT_OFF = "cut_off"


class Cancellation:
    """The handle of one run: asked once, seen by its steps, and by the loop it waits in.

    >>> handle = Cancellation()
    >>> handle.request(StopReason.TIMEOUT)
    >>> handle.request(StopReason.SHUTDOWN)
    >>> handle.reason
    <StopReason.TIMEOUT: 'timeout'>
    """

    __slots__ = ("_in_thread", "_interrupt", "_task", "asked_at", "reason", "stop_when_cut_off")

    # One for all: it is held for a moment, by whoever stops a run or begins a step in a thread.
    _lock = threading.Lock()

    def __init__(self, *, stop_when_cut_off: bool = False) -> None:
        self.stop_when_cut_off = stop_when_cut_off
        self.reason: StopReason | None = None
        self.asked_at: float | None = None
        self._interrupt: Callable[[], object] | None = None
        self._task: asyncio.Task[Any] | None = None
        self._in_thread = False

    @property
    def requested(self) -> bool:
        """Whether the run was asked to stop."""
        return self.reason is not None

    def attach(self, interrupt: Callable[[], object] | None) -> None:
        """Call *interrupt* as well when the run is asked to stop while it awaits something."""
        self._interrupt = interrupt

    def attach_task(self, task: asyncio.Task[Any]) -> None:
        """Cancel *task* as well when the run that goes on in it is asked to stop."""
        self._task = task
        self._interrupt = self._cancel_task

    def _cancel_task(self) -> None:
        if self._task is not None:
            self._task.get_loop().call_soon_threadsafe(self._cancel_if_it_goes_on)

    def _cancel_if_it_goes_on(self) -> None:
        # Another run may have begun in the task since, after this one has detached itself.
        if self._task is not None and self._interrupt is not None:
            self._task.cancel()

    def refuse_if_requested(self, step: str) -> None:
        """Raise :class:`JobCancelled` before *step* if the run was asked to stop."""
        if self.reason is not None:
            raise JobCancelled(f"stopped before step {step!r}: {self.reason}")

    def request(self, reason: StopReason) -> None:
        """Ask the run to stop; the first reason counts."""
        with self._lock:
            if self.reason is not None:
                return
            self.reason = reason
            self.asked_at = time.monotonic()
            # A thread cannot be interrupted: dropping it would leave its body running unseen.
            interrupt = None if self._in_thread else self._interrupt
        if interrupt is not None:
            interrupt()

    def give_up(self) -> None:
        """Wait no longer for a thread that does not listen: its process is about to end."""
        if self._interrupt is not None:
            self._interrupt()

    def enter_thread(self) -> None:
        """A sync step starts: from here on it has to look at ``run.cancelled`` itself.

        Raises :class:`JobCancelled` instead if the run was asked to stop just before: the task is
        about to be interrupted, and the thread would go on unseen.
        """
        with self._lock:
            if self.reason is not None:
                raise JobCancelled(f"stopped before its thread started: {self.reason}")
            self._in_thread = True

    def leave_thread(self) -> None:
        """The sync step is over."""
        with self._lock:
            self._in_thread = False


class CancellationRegistry:
    """The runs of this process by execution id.

    >>> registry = CancellationRegistry()
    >>> handle = registry.register(7)
    >>> registry.try_cancel(7, StopReason.REQUESTED), handle.requested
    (True, True)
    >>> registry.try_cancel(8, StopReason.REQUESTED)
    False
    """

    def __init__(self, lease: LeaseTime | None = None) -> None:
        self._lease = lease or LeaseTime()
        self._handles: dict[int, Cancellation] = {}

    def register(self, execution_id: int, *, stop_when_cut_off: bool = False) -> Cancellation:
        """Make a handle for a run that is about to start."""
        handle = Cancellation(stop_when_cut_off=stop_when_cut_off)
        self._handles[execution_id] = handle
        return handle

    def check_lease(self, handle: Cancellation, owner: str | None) -> None:
        """Ask a run that is about to begin to stop if *owner*, in whose name it was claimed, may
        have lost it: this process was stopped or asleep, and others have given the run up.

        >>> lease = LeaseTime(); lease.renewed("me", until=0.0)
        >>> registry = CancellationRegistry(lease); handle = registry.register(7)
        >>> registry.check_lease(handle, "me"); handle.reason
        <StopReason.NOT_OURS: 'not_ours'>
        """
        if not self._lease.lasts(owner):
            handle.request(StopReason.NOT_OURS)

    def unregister(self, execution_id: int) -> None:
        """Forget a run that is over; an unknown id is fine."""
        self._handles.pop(execution_id, None)

    def try_cancel(self, execution_id: int, reason: StopReason) -> bool:
        """Ask a run to stop if it is one of this process."""
        handle = self._handles.get(execution_id)
        if handle is not None:
            handle.request(reason)
        return handle is not None

    def cancel_all(self, execution_ids: Iterable[int], reason: StopReason) -> None:
        """Ask several runs to stop."""
        for execution_id in execution_ids:
            self.try_cancel(execution_id, reason)

    def cut_off(self) -> list[int]:
        """Ask the runs to stop that must not go on unwatched; returns those not asked before.

        >>> registry = CancellationRegistry()
        >>> handle, other = registry.register(7, stop_when_cut_off=True), registry.register(8)
        >>> registry.cut_off(), registry.cut_off(), other.requested
        ([7], [], False)
        """
        asked = [
            key
            for key, handle in list(self._handles.items())
            if handle.stop_when_cut_off and not handle.requested
        ]
        self.cancel_all(asked, StopReason.CUT_OFF)
        return asked

    def give_up_on(self, execution_ids: Iterable[int]) -> None:
        """Have several runs end as what they were asked to stop for, whatever still goes on."""
        for execution_id in execution_ids:
            if handle := self._handles.get(execution_id):
                handle.give_up()

    def asked_before(self, moment: float) -> set[int]:
        """The runs that go on although they were asked to stop before this ``time.monotonic()``."""
        return {
            key
            for key, handle in list(self._handles.items())
            if handle.asked_at is not None and handle.asked_at < moment
        }

    def ids(self) -> list[int]:
        """The runs that are going on in this process."""
        return list(self._handles)
