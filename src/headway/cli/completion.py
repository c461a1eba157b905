"""What a shell offers when somebody presses Tab: names from the database, or nothing at all."""

import contextlib
import io
from typing import Any

import typer

from headway.cli.deployment import deployment
from headway.store.naming import EXTERNAL_IDS, GROUPS, Names, names_from

OFFERED = 50


def external_ids(context: typer.Context, incomplete: str) -> list[str]:
    """External ids that begin like this.

    >>> external_ids(context, "load-")  # doctest: +SKIP
    ['load-1', 'load-2']
    """
    return _names(context, EXTERNAL_IDS, incomplete)


def group_names(context: typer.Context, incomplete: str) -> list[str]:
    """Groups whose names begin like this.

    >>> group_names(context, "night")  # doctest: +SKIP
    ['nightly']
    """
    return _names(context, GROUPS, incomplete)


def _names(context: typer.Context, names: Names, beginning: str) -> list[str]:
    given: dict[str, Any] = context.params
    unheard = io.StringIO()
    # Whatever fails, or is printed by the application while it is imported: the line that is being
    # typed must stay as it is.
    with (
        contextlib.suppress(Exception, SystemExit),
        contextlib.redirect_stdout(unheard),
        contextlib.redirect_stderr(unheard),
        deployment(given.get("app"), given.get("database_url")) as site,
        site.store.reading() as tx,
    ):
        found = names_from(tx, names, beginning, OFFERED)
        return [name for name in found if name.startswith(beginning) and name.isprintable()]
    return []
