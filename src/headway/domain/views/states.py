"""How a group or a manifest stands, in one word, for its colour."""

from enum import StrEnum


class NodeState(StrEnum):
    """What is most worth knowing about it, the first that holds.

    >>> NodeState("running") is NodeState.RUNNING
    True
    """

    RUNNING = "running"
    FAILED = "failed"
    DISABLED = "disabled"
    QUEUED = "queued"
    IDLE = "idle"


def state_of(*, running: bool, dead: bool, enabled: bool, queued: bool) -> NodeState:
    """The state shown for something of which these hold.

    >>> state_of(running=False, dead=False, enabled=True, queued=True)
    <NodeState.QUEUED: 'queued'>
    """
    if running:
        return NodeState.RUNNING
    if dead:
        return NodeState.FAILED
    if not enabled:
        return NodeState.DISABLED
    return NodeState.QUEUED if queued else NodeState.IDLE
