"""Why something is not running: ``hw.why`` of an application.

It reads, in one picture of the database, what manager and dispatcher would read now, and asks the
functions by which they decide. Nothing is written.
"""

from dataclasses import replace

from headway.config import Settings
from headway.definition.task_servers import TaskServers
from headway.domain.admission import Verdict
from headway.domain.answers import (
    about_entry,
    about_execution,
    about_manifest,
    going_on,
    named,
    start_gates,
)
from headway.domain.dispatching import decide_admissions
from headway.domain.due import as_text
from headway.domain.entry_gates import (
    Standing,
    Surroundings,
    entry_gates,
    limit_gates,
    turn_gate,
)
from headway.domain.execution import Execution, ExecutionState
from headway.domain.gates import Gate, GateName, Stage, Why
from headway.domain.manifest import ManifestDispatchView
from headway.domain.manifest_gates import Present, delay_gate, queue_gates
from headway.domain.names import checked_id, checked_name
from headway.domain.resting import resting_until
from headway.domain.routing import workflows_of
from headway.domain.turn_gates import share_gate, wake_up_gate
from headway.domain.work_queue import Source, WorkQueueEntry, entry_priority
from headway.errors import DefinitionError, EntryNotFound, ExecutionNotFound
from headway.store import (
    executions,
    explaining,
    foreseeing,
    manifests,
    servers,
    unknown_workflows,
)
from headway.store.absent_servers import AbsentServer, absent_servers
from headway.store.dispatch_page import limits_of, read_page
from headway.store.engine import Store
from headway.store.transaction import Transaction

NOT_YET = 0
MOST_CANDIDATES = 1000  # as many as one cycle of the manager takes on at most
ANOTHER = "of another application"


class Explaining:
    """Says why a manifest, an execution or an entry is not running.

    Without *to_own_workers* nobody asks which processes are alive, as in a sandbox.

    >>> print(Explaining(store, settings, task_servers).why("load-users"))  # doctest: +SKIP
    load-users does not run because it is not due before 2026-01-05 13:00:00 UTC; it can then
    """

    def __init__(
        self,
        store: Store,
        settings: Settings,
        task_servers: TaskServers,
        *,
        to_own_workers: bool = True,
    ) -> None:
        self._store = store
        self._settings = settings
        self._task_servers = task_servers
        self._to_own_workers = to_own_workers

    def why(
        self,
        external_id: str | None = None,
        *,
        execution: int | None = None,
        entry: int | None = None,
    ) -> Why:
        """Say it about the one of these that is given."""
        given = [one for one in (external_id, execution, entry) if one is not None]
        if len(given) != 1:
            raise DefinitionError(
                f"why takes one thing to explain, not {len(given)}; for example "
                "why('load-users'), why(execution=17) or why(entry=7)"
            )
        with self._store.picturing() as tx:
            look = _Look(tx, self._settings, self._task_servers, self._to_own_workers)
            if external_id is not None:
                return look.at_manifest(checked_name("external_id", external_id))
            if execution is not None:
                return look.at_execution(checked_id("execution", execution))
            return look.at_entry(checked_id("entry", entry))


class _Look:
    """One look at the database, at one moment."""

    def __init__(
        self, tx: Transaction, settings: Settings, task_servers: TaskServers, living: bool
    ) -> None:
        self._tx = tx
        self._settings = settings
        self._task_servers = task_servers
        self._workers = servers.living_workers(tx) if living else None
        self._roles = servers.living_roles(tx) if living else None
        self._absent: dict[str, AbsentServer] = absent_servers(tx) if living else {}
        self._elsewhere = task_servers.reachable(self._absent)
        self._limits = limits_of(tx, settings, self._workers)
        self._active = executions.count_active(tx, settings.exclude_from_max_active_jobs)

    def at_manifest(self, external_id: str) -> Why:
        key = explaining.manifest_id_of(self._tx, external_id)
        views = [] if key is None else manifests.load_views(self._tx, [key])
        if key is None or not views:
            raise self._task_servers.registry.not_found(external_id)
        [view], run = views, explaining.live_execution_of(self._tx, key)
        entry = explaining.next_entry_of(self._tx, key)
        defaults, present = self._settings.manifest_defaults, self._present(key, entry, run)
        gates = queue_gates(view, self._tx.now, defaults, present)
        if all(gate.passed for gate in gates):
            gates += self._in_the_next_cycle(view)
        gates += self._alive(servers.MANAGER, GateName.MANAGER, Stage.QUEUE)
        gates += self._waiting(entry) if entry else self._not_yet(view)
        if run is not None:
            started = self._start_gates(run)
            answer = about_execution(run, started)
            return Why(external_id, answer, (*gates, *started), entry, run.id)
        return Why(external_id, about_manifest(external_id, gates, entry), tuple(gates), entry)

    def _in_the_next_cycle(self, view: ManifestDispatchView) -> list[Gate]:
        """Whether the manager looks at a due manifest, and has a place for it in one cycle."""
        now, limit = self._tx.now, self._settings.max_work_queue_entries_per_cycle
        ids = foreseeing.next_candidates(self._tx, MOST_CANDIDATES)
        wake_up = wake_up_gate(view, view.manifest_id in ids, now)
        if limit is None or len(ids) <= limit or not wake_up.passed:
            return [wake_up]
        # Only where there may be too many: this reads as much as a cycle of the manager.
        views = manifests.load_views(self._tx, ids)
        defaults = self._settings.manifest_defaults
        return [wake_up, share_gate(view, views, now, defaults, limit)]

    def at_entry(self, entry_id: int) -> Why:
        standing = self._standing(entry_id)
        if standing is not None:
            one = standing.entry
            subject, gates = named(one.external_id, one.workflow), self._entry_gates(standing)
            return Why(subject, about_entry(subject, gates, entry_id), tuple(gates), entry_id)
        ended = explaining.ended_entry(self._tx, entry_id)
        if ended is not None:
            subject = named(ended.external_id, ended.workflow)
            when = f" at {as_text(ended.ended_at)}" if ended.ended_at else ""
            because = f": {ended.reason}" if ended.reason else ""
            answer = f"entry {entry_id} of {subject} never started: {ended.status}{when}{because}"
            return Why(subject, answer, entry=entry_id)
        run = explaining.last_execution_of(self._tx, entry_id)
        if run is None:
            raise EntryNotFound(entry_id)
        return self._run(run)

    def at_execution(self, execution_id: int) -> Why:
        run = executions.find(self._tx, execution_id)
        if run is None:
            raise ExecutionNotFound(execution_id)
        return self._run(run)

    def _run(self, run: Execution) -> Why:
        gates = self._start_gates(run)
        subject = named(run.external_id, run.workflow)
        return Why(subject, about_execution(run, gates), tuple(gates), run.entry_id, run.id)

    def _start_gates(self, run: Execution) -> list[Gate]:
        if run.state is not ExecutionState.PENDING or self._workers is None:
            return []
        shares = self._workers.shares
        taken = any(share.holds(run.workflow, run.group_name) for share in shares)
        running = explaining.running_here(self._tx)
        return start_gates(run, taken, self._workers.slots, running, self._reason(run.task_server))

    def _reason(self, task_server: str) -> str:
        """Why this task server does not answer; empty if it does."""
        absent = self._absent.get(task_server)
        return "" if absent is None else absent.reason

    def _present(self, key: int, entry: int | None, run: Execution | None) -> Present:
        letter = explaining.dead_letter_of(self._tx, key)
        return Present(
            "" if entry is None else f"entry {entry}",
            "" if run is None else going_on(run),
            "" if letter is None else f"{letter[0]}: {letter[1]}",
        )

    def _standing(self, entry_id: int) -> Standing | None:
        taken = None if self._workers is None else (*self._workers.shares, *self._elsewhere)
        found = explaining.standing_of(self._tx, entry_id, taken)
        if found is None:
            return None
        [routed] = self._task_servers.routed([found.entry])
        return replace(found, entry=routed)

    def _waiting(self, entry_id: int) -> list[Gate]:
        standing = self._standing(entry_id)
        return [] if standing is None else self._entry_gates(standing)

    def _entry_gates(self, standing: Standing) -> list[Gate]:
        taken = standing.holds(GateName.WORKER)
        entry, around = self._surroundings(standing.entry, taken)
        standing = replace(standing, entry=entry)
        gates = entry_gates(standing, around, self._tx.now)
        if all(gate.passed for gate in gates):
            # Only what nothing else holds up: this reads as much as a cycle of the dispatcher.
            gates.append(turn_gate(entry.task_server == ANOTHER or self._is_admitted(entry)))
        return gates + self._alive(servers.DISPATCHER, GateName.DISPATCHER, Stage.DISPATCH)

    def _not_yet(self, view: ManifestDispatchView) -> list[Gate]:
        """What would be asked if the manifest were queued now."""
        if view.trouble is not None:
            return []
        workers, cap = self._workers, explaining.group_cap_of(self._tx, view.group_id)
        [wanted] = self._task_servers.routed([_imagined(view, self._tx, cap)])
        shares = None if workers is None else (*workers.shares, *self._elsewhere)
        taken = shares is None or any(
            share.holds(view.workflow, view.group_name) for share in shares
        )
        entry, around = self._surroundings(wanted, taken)
        delay = delay_gate(view, self._tx.now, self._settings.manifest_defaults)
        return [
            delay,
            *limit_gates(entry, around),
            *self._alive(servers.DISPATCHER, GateName.DISPATCHER, Stage.DISPATCH),
        ]

    def _surroundings(
        self, entry: WorkQueueEntry, taken: bool
    ) -> tuple[WorkQueueEntry, Surroundings]:
        if not taken and self._others_send(entry.workflow):
            entry, taken = entry._replace(task_server=ANOTHER), True
        group = entry.group_id
        holders = () if group is None else explaining.holders_of(self._tx, group)
        fails_at = None
        since = None if taken else unknown_workflows.last_seen(self._tx).since.get(entry.workflow)
        if since is not None:
            waits_since = max(since, entry.eligible_since or entry.created_at)
            fails_at = waits_since + self._settings.unknown_workflow_timeout
        reason = self._reason(entry.task_server)
        return entry, Surroundings(self._active, self._limits, holders, taken, fails_at, reason)

    def _others_send(self, workflow: str) -> bool:
        """Whether dispatchers of other applications send it to a task server of theirs."""
        routed = frozenset[str]() if self._workers is None else self._workers.routed
        return workflow in routed - workflows_of(self._task_servers.elsewhere())

    def _is_admitted(self, entry: WorkQueueEntry) -> bool:
        page = read_page(self._tx, self._settings, self._workers, self._elsewhere).entries
        resting = resting_until(page, self._tx.now)
        awake = [one for one in page if one.resting not in resting]
        decided = decide_admissions(self._task_servers.routed(awake), self._active, self._limits)
        return any(one.entry.id == entry.id and one.verdict is Verdict.DISPATCH for one in decided)

    def _alive(self, role: str, name: GateName, stage: Stage) -> list[Gate]:
        if self._roles is None:
            return []
        if role in self._roles:
            return [Gate(name, stage, True, f"a {role} is alive")]
        return [Gate(name, stage, False, f"no {role} is alive", "when one is started")]


def _imagined(view: ManifestDispatchView, tx: Transaction, cap: int | None) -> WorkQueueEntry:
    """The entry that the manager would write now, as far as limits ask about it."""
    return WorkQueueEntry(
        id=NOT_YET,
        workflow=view.workflow,
        source=Source.SCHEDULE,
        priority=entry_priority(view.group_priority),
        created_at=tx.now,
        manifest_id=view.manifest_id,
        group_id=view.group_id,
        external_id=view.external_id,
        group_name=view.group_name,
        group_priority=view.group_priority,
        group_max_active_jobs=cap,
    )
