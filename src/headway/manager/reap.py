"""The four steps that end what takes too long or fails too often."""

from dataclasses import replace
from datetime import datetime

from headway.config import Settings
from headway.domain.dead_letter import SAID_SO, dead_letter_reason
from headway.domain.manifest import ManifestDispatchView
from headway.domain.readiness import Defaults, deserves_dead_letter, max_retries
from headway.manager.state import ManagerEnv, ManagerState
from headway.store import dead_letters, executions, manifests, outcomes, servers
from headway.store.executions import Running

TIMED_OUT = "timeout"


def cancel_timed_out_jobs(state: ManagerState, env: ManagerEnv) -> ManagerState:
    """Flag runs beyond their timeout; the cycle tells those of this very server once it commits."""
    if not env.watches:
        return state
    running = executions.running(env.tx)
    late = [
        run.execution_id
        for run in running
        if not run.cancel_requested and timed_out(run, env.tx.now, env.settings)
    ]
    cancelled = executions.request_cancel(env.tx, late, TIMED_OUT, wait=False)
    return replace(state, running=tuple(running), cancelled=tuple(cancelled))


def timed_out(run: Running, now: datetime, settings: Settings) -> bool:
    """Whether a run has been going for longer than its manifest, or the default, allows."""
    return now - run.started_at > (run.timeout or settings.default_job_timeout)


def reap_stale_pending(state: ManagerState, env: ManagerEnv) -> ManagerState:
    """Fail executions no worker has picked up in time.

    What waits behind other work is left: as long as workers start things at all, what one of them
    knows how to run will have its turn.
    """
    limit = env.tx.now - env.settings.stale_pending_timeout
    if not env.watches or not executions.has_stale_pending(env.tx, limit):
        return state
    at_work = servers.claimed_since(env.tx, limit)
    living = servers.living_workers(env.tx)
    served = living.workflows if at_work else frozenset[str]()
    backoff = env.settings.retry_policy
    reaped = outcomes.fail_stale_pending(env.tx, limit, served, living.delivered, backoff)
    return replace(state, reaped_pending=tuple(reaped))


def reap_stale_in_progress(state: ManagerState, env: ManagerEnv) -> ManagerState:
    """Fail runs that had time enough to end, and to stop when asked to."""
    now, settings = env.tx.now, env.settings
    stale = [run.execution_id for run in state.running if is_stale(run, now, settings)]
    backoff = settings.retry_policy
    reaped = outcomes.fail_stale_in_progress(env.tx, stale, backoff) if stale else []
    return replace(state, reaped_in_progress=tuple(reaped))


def is_stale(run: Running, now: datetime, settings: Settings) -> bool:
    """Never before a long timeout of its own has passed and the run had time to stop."""
    allowed = (run.timeout or settings.default_job_timeout) + settings.cancel_grace
    return now - run.started_at > max(settings.stale_in_progress_timeout, allowed)


def reap_failed_jobs(state: ManagerState, env: ManagerEnv) -> ManagerState:
    """Dead-letter manifests that failed too often, failures of this very cycle included."""
    views = dict(state.views)
    concerned = {one.manifest_id for one in state.reaped if one.manifest_id is not None}
    if concerned:
        fresh = manifests.load_views(env.tx, concerned)
        views |= {view.manifest_id: view for view in fresh}
    defaults = env.settings.manifest_defaults
    letters = [
        dead_letters.NewDeadLetter(view.manifest_id, _reason(view, defaults), view.failed_count)
        for view in views.values()
        if deserves_dead_letter(view, defaults)
    ]
    created = dead_letters.create(env.tx, letters)
    return replace(state, views=views, dead_lettered=tuple(created))


def _reason(view: ManifestDispatchView, defaults: Defaults) -> str:
    if view.failed_for_good:
        return SAID_SO
    return dead_letter_reason(view.failed_count, max_retries(view, defaults))
