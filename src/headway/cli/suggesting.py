"""Did you mean: the name that is nearest to one that does not exist."""

import difflib
from collections.abc import Iterator
from contextlib import contextmanager

from headway.errors import GroupNotFound, HeadwayError, ManifestNotApplied, ManifestNotFound
from headway.store.engine import Store
from headway.store.naming import EXTERNAL_IDS, GROUPS, Names, names_around

LOOKED_AT = 250


@contextmanager
def suggested(store: Store) -> Iterator[None]:
    """What is not found is told together with the nearest name there is.

    >>> with suggested(store):  # doctest: +SKIP
    ...     raise ManifestNotFound("laod-42")
    HeadwayError: no manifest has the external id 'laod-42'; did you mean 'load-42'?
    """
    try:
        yield
    except ManifestNotApplied:
        raise  # the name is right
    except ManifestNotFound as error:
        raise _told(store, error, EXTERNAL_IDS, error.external_id, "manifests") from None
    except GroupNotFound as error:
        raise _told(store, error, GROUPS, error.name, "groups") from None


def _told(
    store: Store, error: HeadwayError, names: Names, wrong: str, listed_by: str
) -> HeadwayError:
    with store.reading() as tx:
        near = names_around(tx, names, wrong, LOOKED_AT)
    close = difflib.get_close_matches(wrong, near, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"see headway {listed_by} list"
    return HeadwayError(f"{error}; {hint}")
