"""Those who ask for work while everything breaks, and remember what they were answered."""

import threading
import time
from collections.abc import Callable
from functools import partial
from random import Random

from headway.definition.app import Headway
from headway.errors import HeadwayError
from headway.store.engine import TRANSIENT
from headway.torture.application import Work
from headway.torture.evidence import Notebook
from headway.torture.plan import Plan

PATIENCE = 0.2
LONG = 8.0


class Client:
    """Asks for work at an even rate until its time is over.

    An answer that never came is remembered as such: the work may have been accepted or not.
    """

    def __init__(self, hw: Headway, plan: Plan, notes: Notebook) -> None:
        self._hw = hw
        self._plan = plan
        self._notes = notes
        self._chance = Random(f"{plan.seed}:client")
        self._number = 0
        self._to_cancel: list[tuple[float, int, int]] = []
        self._thread = threading.Thread(target=self._work, name="client", daemon=True)

    def start(self) -> None:
        """Begin to ask."""
        self._thread.start()

    def join(self) -> None:
        """Return when its time is over and it has asked for everything."""
        self._thread.join()

    def _work(self) -> None:
        began = time.monotonic()
        for number in range(self._plan.poisonous):
            self._ask("poison", partial(self._hw.trigger, f"poison-{number}"))
        while (now := time.monotonic() - began) < self._plan.seconds:
            wanted = int(now * self._plan.jobs_per_second)
            while self._number < wanted:
                self._number += 1
                self._ask_for_something(self._number)
            self._cancel_what_is_due()
            time.sleep(0.05)
        while self._to_cancel:
            self._cancel_what_is_due()
            time.sleep(0.05)

    def _ask_for_something(self, number: int) -> None:
        kind, chance = self._chance.random(), self._chance
        if kind < 0.35:
            external_id = f"capped-{chance.randrange(self._plan.capped)}"
            work = Work(number=number, seconds=chance.choice((0, 0, 0, 0.02)))
            self._ask(number, partial(self._hw.trigger, external_id, work))
        elif kind < 0.96:
            seconds = chance.choice((0, 0, 0, 0, 0, 0.05, 0.2))
            self._enqueue("nap", Work(number=number, seconds=seconds))
        elif kind < 0.985:
            entry = self._enqueue("nap", Work(number=number, seconds=chance.uniform(0.2, 2)))
            if entry is not None:
                at = time.monotonic() + chance.choice((0, 0, 0.3, 1))
                self._to_cancel.append((at, number, entry))
        elif kind < 0.99:
            self._enqueue("plod", Work(number=number, seconds=chance.uniform(0.1, 1)))
        else:
            self._enqueue("plod", Work(number=number, seconds=LONG))

    def _enqueue(self, workflow: str, work: Work) -> int | None:
        return self._ask(work.number, partial(self._hw.enqueue, workflow, work))

    def _ask(self, number: object, ask: Callable[[], int | None]) -> int | None:
        try:
            entry = ask()
        except (*TRANSIENT, HeadwayError):
            self._notes.note("unanswered", number)
            time.sleep(PATIENCE)  # whoever hammers a database that is away only wastes his wishes
            return None
        self._notes.note("accepted", number, entry or "-")
        return int(entry) if entry else None

    def _cancel_what_is_due(self) -> None:
        now = time.monotonic()
        due = [one for one in self._to_cancel if one[0] <= now]
        for wish in due:
            _, number, entry = wish
            try:
                answer = self._hw.cancel(entry=entry)
            except TRANSIENT:
                continue  # asked again at the next turn
            self._to_cancel.remove(wish)
            self._notes.note("cancelled", number, answer)
