"""Where a demo keeps what it writes."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory


@contextmanager
def kept_or_temporary(directory: Path | None) -> Iterator[Path]:
    """*directory*, created if need be; without one, a temporary folder for as long as it lasts.

    >>> with kept_or_temporary(None) as folder: folder.is_dir()
    True
    """
    if directory is not None:
        directory.mkdir(parents=True, exist_ok=True)
        yield directory.resolve()
        return
    with TemporaryDirectory(prefix="headway-demo-", ignore_cleanup_errors=True) as temporary:
        yield Path(temporary)
