"""A process that turns requests into workorders, or executes these, and is killed where the test
has laid a token.

    python -m tests.federation.mortal schedule|execute DATABASE_URL FOLDER

A token is a file ``BOUNDARY.NUMBER`` in FOLDER/tokens, BOUNDARY being the name of a step. Whoever
comes to that step first takes it away and dies there by SIGKILL, before it begins. Every claim that
was acquired or renewed is noted in FOLDER/claims.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from functools import wraps
from pathlib import Path
from typing import Any

from headway import Headway
from headway.domain.azolla.artifacts import ClaimRecord
from headway.federation import participation
from headway.federation.building import ManifestBuilding
from headway.federation.worker import ManifestSchedulerWorker
from headway.service import Service
from headway.store import claims
from headway.wakeups import Role

WORKFLOW_STEPS = (
    "claim_workorder",
    "load_snapshot",
    "build_manifest",
    "keep_bundle",
    "judge_bundle",
)

PAUSE = (0.1, 0.9)


class Tokens:
    """Where to die."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def meet(self, boundary: str) -> None:
        for token in sorted(self._folder.glob(f"{boundary}.*")):
            with suppress(FileNotFoundError):
                token.unlink()  # only one process can: it is the one
                os.kill(os.getpid(), signal.SIGKILL)


def application(url: str) -> Headway:
    return Headway(
        "mortal",
        database_url=url,
        max_active_jobs=None,
        worker_count=2,
        server_lease="2s",
        azolla_claim_lease="1s",
        azolla_max_attempts=100,
        max_crashes=100,
        default_retry_delay="0.1s",
        dispatcher_polling_interval="0.05s",
    )


def make_mortal(tokens: Tokens) -> None:
    class Mortal(ManifestSchedulerWorker):
        def __init__(self, env: Any) -> None:
            super().__init__(env, tokens.meet)

    vars(participation)["ManifestSchedulerWorker"] = Mortal
    for name in WORKFLOW_STEPS:
        setattr(ManifestBuilding, name, _dying_before(getattr(ManifestBuilding, name), tokens))


def _dying_before(step: Callable[..., Any], tokens: Tokens) -> Callable[..., Any]:
    @wraps(step)
    def mortal(*arguments: Any) -> Any:
        tokens.meet(step.__name__)
        return step(*arguments)

    return mortal


def note_claims(file: Path) -> None:
    for name in ("acquire", "renew"):
        setattr(claims, name, _noting(getattr(claims, name), file))


def _noting(verb: Callable[..., ClaimRecord | None], file: Path) -> Callable[..., Any]:
    @wraps(verb)
    def noted(*arguments: Any) -> ClaimRecord | None:
        claim = verb(*arguments)
        if claim is not None:
            line = f"{claim.resource_type} {claim.resource_id} {claim.claim_version}"
            with file.open("a") as notes:
                notes.write(f"{line} {claim.owner_id}\n")
        return claim

    return noted


def schedule(app: Headway) -> None:
    """Tick after tick, until the test ends."""
    with closing(app.open_store()) as store:
        azolla = participation.Participation(app, store)
        while True:
            if not azolla.tick(f"scheduler-{os.getpid()}").processed:
                time.sleep(random.uniform(*PAUSE))  # else all ten begin at once, nine in vain


def execute(app: Headway) -> None:
    """Dispatch and run, until the test ends."""
    service = Service(app, roles=(Role.DISPATCHER, Role.WORKER))
    service.start()
    signal.pause()


def main(role: str, url: str, folder: str) -> None:
    make_mortal(Tokens(Path(folder, "tokens")))
    note_claims(Path(folder, "claims"))
    {"schedule": schedule, "execute": execute}[role](application(url))


if __name__ == "__main__":
    main(*sys.argv[1:])
