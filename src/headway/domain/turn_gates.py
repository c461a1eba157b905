"""Whether the manager's next cycle looks at a due manifest, and whether its group has a share left.

Pure: no database, no clock. What a cycle decides is asked of the function by which it decides.
"""

from collections.abc import Collection, Sequence
from datetime import datetime

from headway.domain.deciding import Decision, Verdict, decide_all
from headway.domain.due import as_text
from headway.domain.gates import Gate, GateName, Stage
from headway.domain.manifest import ManifestDispatchView
from headway.domain.readiness import Defaults, deserves_dead_letter

IN_A_LATER_CYCLE = "in a later cycle"


def wake_up_gate(view: ManifestDispatchView, looked_at: bool, now: datetime) -> Gate:
    """Whether the manager looks at a manifest in its next cycle."""
    if looked_at:
        return _gate(GateName.WAKE_UP, True, "the manager looks at it in its next cycle")
    if view.wake_at is None:
        sentence = "the manager has no time at which it looks at it again"
        return _gate(GateName.WAKE_UP, False, sentence, "when the manager's sweep comes to it")
    if view.wake_at <= now:
        sentence = "more manifests are due than one cycle of the manager looks at"
        return _gate(GateName.WAKE_UP, False, sentence, IN_A_LATER_CYCLE)
    sentence = f"the manager looks at it again at {as_text(view.wake_at)}"
    return Gate(GateName.WAKE_UP, Stage.QUEUE, False, sentence, "then", view.wake_at)


def share_gate(
    view: ManifestDispatchView,
    views: Sequence[ManifestDispatchView],
    now: datetime,
    defaults: Defaults,
    limit: int,
) -> Gate:
    """Whether a cycle that decides about *views* and queues at most *limit* queues this one."""
    doomed = {one.manifest_id for one in views if deserves_dead_letter(one, defaults)}
    decisions = decide_all(views, doomed, now, defaults, limit)
    wanted = _of_verdicts(decisions, (Verdict.QUEUE, Verdict.DEFER))
    queued = _of_verdicts(decisions, (Verdict.QUEUE,))
    groups = {one.view.group_id for one in wanted}
    group = f"its group {view.group_name!r}"
    if len(groups) > limit:
        # Where the last cycle ended, only its manager knows.
        sentence = f"{len(groups)} groups have due manifests, and a cycle queues {limit}"
        return _gate(
            GateName.SHARE, False, f"{sentence}, in turn", f"when it is the turn of {group}"
        )
    if any(one.view.manifest_id == view.manifest_id for one in queued):
        return _gate(GateName.SHARE, True, f"{group} has a share of this cycle left")
    share = sum(one.view.group_id == view.group_id for one in queued)
    due = sum(one.view.group_id == view.group_id for one in wanted)
    sentence = f"{group} had its share of {share} in this cycle ({due} of it are due)"
    return _gate(GateName.SHARE, False, sentence, IN_A_LATER_CYCLE)


def _of_verdicts(decisions: Collection[Decision], verdicts: Collection[Verdict]) -> list[Decision]:
    return [one for one in decisions if one.verdict in verdicts]


def _gate(name: GateName, passed: bool, sentence: str, until: str = "") -> Gate:
    return Gate(name, Stage.QUEUE, passed, sentence, until)
