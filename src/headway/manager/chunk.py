"""How many manifests one cycle takes on: half as many after a timeout, then slowly more again."""

LARGEST = 1000
GROWTH = 100


class ChunkSize:
    """The size of the next chunk.

    >>> chunk = ChunkSize()
    >>> chunk.took_too_long()
    >>> chunk.size
    500
    >>> chunk.done(500)
    >>> chunk.size
    600
    """

    def __init__(self) -> None:
        self.size = LARGEST

    def took_too_long(self) -> None:
        """The database's timeout ended the last chunk."""
        self.size = max(1, self.size // 2)

    def done(self, candidates: int) -> None:
        """The last chunk is committed; only a full one says that more would do, too."""
        if candidates >= self.size:
            self.size = min(LARGEST, self.size + GROWTH)
