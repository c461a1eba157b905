"""Teaching a Celery application to run what headway sends to it."""

import logging
import os
from collections.abc import Iterable
from typing import Any

from celery import Celery, signals
from celery.concurrency.prefork import TaskPool as Prefork

from headway.celery.receiving import Receiver
from headway.definition.app import Headway
from headway.domain.text import shown
from headway.errors import DefinitionError
from headway.servers.celery import TASK

logger = logging.getLogger("headway")

JSON = frozenset({"json", "application/json"})
CONSUMER = "headway.celery.consuming:Consumer"


def install(app: Celery, hw: Headway) -> None:
    """Have the workers of *app* run the executions of *hw*; call it where *app* is defined.

    Each process that runs them keeps a lease of its own, like every worker. JSON is the only
    content that the workers accept from then on, for whatever else they run as well.

    >>> from celery import Celery
    >>> hw = Headway("warehouse")
    >>> app = Celery("warehouse", broker="redis://localhost:6379/0")
    >>> install(app, hw)
    >>> "headway.run" in app.tasks
    True
    """
    if not isinstance(app, Celery) or not isinstance(hw, Headway):
        raise DefinitionError(
            f"install({shown(app)}, {shown(hw)}): takes your Celery application and your Headway; "
            "for example install(app, hw)"
        )
    check_content(app.conf.accept_content)
    Installation(app, hw)


def check_content(accepted: Iterable[str]) -> None:
    """Refuse a configuration in which a message could name code to run.

    >>> check_content(["json", "pickle"])
    Traceback (most recent call last):
    headway.errors.DefinitionError: accept_content = ['json', 'pickle']: must be ['json'], because \
whoever can write to the broker could otherwise run code; for example app.conf.accept_content = \
['json']
    """
    if not set(accepted) <= JSON:
        raise DefinitionError(
            f"accept_content = {shown(list(accepted))}: must be ['json'], because whoever can "
            "write to the broker could otherwise run code; for example app.conf.accept_content = "
            "['json']"
        )


class Installation:
    """The task of one application, and what its workers do when processes come and go."""

    def __init__(self, app: Celery, hw: Headway) -> None:
        self._app = app
        self._receiver = Receiver(hw)
        self._main_process: int | None = None
        # What a lost child had not claimed yet goes to another at once; the claim sorts it out.
        app.task(
            name=TASK,
            shared=False,  # else it would be the task of every Celery application in this process
            ignore_result=True,
            acks_late=True,
            reject_on_worker_lost=True,
            serializer="json",
            typing=False,
        )(self._receiver.receive)
        app.conf.worker_consumer = CONSUMER
        for signal, reaction in (
            (signals.worker_init, self._worker_starts),
            (signals.worker_process_init, self._process_starts),
            (signals.worker_ready, self._worker_is_ready),
            (signals.worker_process_shutdown, self._ends),
            (signals.worker_shutdown, self._ends),
        ):
            signal.connect(reaction, weak=False)

    def _worker_starts(self, sender: Any, **_: Any) -> None:
        """Nothing of headway's is opened here: what a child inherited would be half alive."""
        if sender.app is not self._app:
            return
        self._main_process = os.getpid()
        try:
            check_content(self._app.conf.accept_content)
        except DefinitionError as error:
            logger.critical("%s", error)
            raise SystemExit(1) from None

    def _process_starts(self, **_: Any) -> None:
        """A child of a prefork pool, or the only process of a solo one."""
        if self._main_process is not None:
            self._receiver.open_soon(forked=self._main_process != os.getpid())

    def _worker_is_ready(self, sender: Any, **_: Any) -> None:
        """Threads and greenlets run in the main process itself."""
        if sender.app is self._app and not isinstance(sender.pool, Prefork):
            green = bool(getattr(sender.pool, "is_green", False))
            self._receiver.open_soon(forked=False, green=green)

    def _ends(self, **_: Any) -> None:
        self._receiver.close()
