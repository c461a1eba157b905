"""The deployment an operator's command is about: its database, and its application if named.

Most commands need the database alone. The application is named where its code or settings matter.
"""

import getpass
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

import typer

from headway.cli.applications import applications
from headway.cli.database import database_option, open_database, refuse_missing
from headway.cli.suggesting import suggested
from headway.cli.target import load
from headway.cli.usage import APP_VARIABLE, APPLICATION
from headway.definition.app import Headway
from headway.definition.explaining import Explaining
from headway.definition.masking import shown_input
from headway.definition.operating import Operator
from headway.definition.runtime import Runtime
from headway.history import History
from headway.store.engine import Store
from headway.store.migrate import check_schema

NOBODY = "headway"

App = Annotated[
    str | None,
    typer.Option(
        "--app",
        "-a",
        metavar=APPLICATION,
        envvar=APP_VARIABLE,
        show_envvar=False,
        autocompletion=applications,
        help="The application, if its database or its code is needed: shop:hw. Else HEADWAY_APP.",
    ),
]
DatabaseUrl = Annotated[
    str | None,
    database_option(
        "The database itself. Else the application's, HEADWAY_DATABASE_URL, sqlite:///headway.db."
    ),
]


@dataclass(frozen=True)
class Deployment:
    """An open database, and the application on it; an empty one if none was named."""

    app: Headway
    store: Store
    named: bool

    @property
    def history(self) -> History:
        """What happened here, and how things stand."""
        return History(self.store)

    @property
    def now(self) -> datetime:
        """What its database's clock says, by which everything in it is dated."""
        with self.store.reading() as tx:
            return tx.now

    @property
    def operator(self) -> Operator:
        """The actions, in the name of who is at the keyboard."""
        most = self.app.settings.max_queued_per_group
        runtime = Runtime(self.app.name, self.app.registry, self.store, most_queued=most)
        return Operator(actor(), runtime)

    def with_code(self, option: str) -> "Deployment":
        """This one, for what *option* asks of the application's code.

        >>> site.with_code("--input").operator.trigger("load", {"day": 3})  # doctest: +SKIP
        """
        if not self.named:
            raise typer.BadParameter(
                f"{option} is checked by the application's code; name it: --app MODULE:APP"
            )
        return self

    def input_of(self, workflow: str, text: str | None) -> Any:
        """A stored input, without what its workflow calls secret.

        >>> site.input_of("load", '{"day": 3}')  # doctest: +SKIP
        {'day': 3}
        """
        return None if text is None else shown_input(self.app.registry, workflow, text)

    @property
    def explaining(self) -> Explaining:
        """Why something does not run here."""
        return Explaining(self.store, self.app.settings, self.app.task_servers)


@contextmanager
def deployment(app: str | None, database_url: str | None) -> Iterator[Deployment]:
    """The deployment these options name, for as long as the block lasts.

    >>> with deployment("shop:hw", None) as site: ...  # doctest: +SKIP
    """
    chosen = Headway(NOBODY) if app is None else load(app)
    chosen.database_url = database_url or chosen.database_url
    named = bool(app or database_url)
    refuse_missing(chosen.database_url, named=named, by="--database-url URL or --app MODULE:APP")
    with closing(open_database(chosen.database_url)) as store:
        store.check()
        check_schema(store)
        with suggested(store):
            yield Deployment(chosen, store, named=app is not None)


def actor() -> str:
    """Who is at the keyboard, as the audit trail shall name them.

    >>> actor().startswith("cli:")
    True
    """
    try:
        return f"cli:{getpass.getuser()}"
    except (KeyError, OSError):
        return f"cli:{os.getuid()}"  # a container's user need not have a name
