"""What is refused although nothing is wrong with it."""

from headway.errors.base import HeadwayError


class QueueFull(HeadwayError):
    """So much waits already that no more is queued beside it for people and tokens.

    >>> print(QueueFull(10_000, "in group 'nightly'"))
    10000 entries wait already in group 'nightly'; come back when fewer do (max_queued_per_group)
    """

    def __init__(self, most: int, where: str) -> None:
        super().__init__(
            f"{most} entries wait already {where}; come back when fewer do (max_queued_per_group)"
        )


class KeyReused(HeadwayError):
    """An idempotency key was used for another request before."""

    def __init__(self, key: str) -> None:
        super().__init__(
            f"idempotency key {key!r} was used for another request; make up a new one for each"
        )


class RemovalRefused(HeadwayError):
    """Applying a declaration would remove more than half of its application's manifests."""

    def __init__(self, application: str, count: int) -> None:
        counted = f"{count} manifest{'' if count == 1 else 's'}"
        super().__init__(
            f"nothing was applied: {counted} of {application!r} would be removed, more than half; "
            "if that is meant, add --allow-removal"
        )
