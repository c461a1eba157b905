"""The settings of the work queue; :class:`headway.config.Settings` has them among its own."""

from pydantic import BaseModel, Field

from headway.domain.setting_values import Limit


class QueueSettings(BaseModel):
    """How much is queued, and read from the queue."""

    max_queued_jobs_per_cycle: Limit = Field(
        100,
        description="Most queued entries of one group the dispatcher loads in one cycle; "
        "none = all.",
    )
    max_work_queue_entries_per_cycle: Limit = Field(
        200, description="Most entries the manager queues in one cycle; none = all."
    )
    max_queued_per_group: Limit = Field(
        10_000,
        description="Entries that wait in a group from which on people and programs that act by "
        "name queue no more; none = no limit.",
    )
