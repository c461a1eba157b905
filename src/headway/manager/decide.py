"""Which manifests are queued, by the settings of this process; the decision itself is pure."""

from collections.abc import Collection, Iterable
from datetime import datetime

from headway.config import Settings
from headway.domain import deciding
from headway.domain.deciding import Decision as Decision
from headway.domain.deciding import Verdict as Verdict
from headway.domain.deciding import decide as decide
from headway.domain.deciding import keep_to_shares as keep_to_shares
from headway.domain.deciding import last_group as last_group
from headway.domain.manifest import ManifestDispatchView


def decide_all(
    views: Iterable[ManifestDispatchView],
    dead_lettered: Collection[int],
    now: datetime,
    settings: Settings,
    after: int = 0,
) -> list[Decision]:
    """Decide about every view, then keep to the fair share of each group."""
    limit = settings.max_work_queue_entries_per_cycle
    return deciding.decide_all(views, dead_lettered, now, settings.manifest_defaults, limit, after)
