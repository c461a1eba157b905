"""Whoever turns knobs under load."""

import time
from random import Random
from typing import Any

from headway.definition.app import Headway
from headway.errors import HeadwayError
from headway.store.engine import TRANSIENT
from headway.torture.plan import CAPS

FOR_A_WHILE = 3.0


class Operator:
    """Lowers a cap to one or switches a group off, and takes that back a little later."""

    def __init__(self, hw: Headway, chance: Random) -> None:
        self.hw = hw
        self._chance = chance
        self._changed: dict[int, float] = {}

    def change(self) -> None:
        """Change one group."""
        cap = self._chance.choice(CAPS)
        # Also what was refused is taken back: its COMMIT may have got through without an answer.
        self._changed[cap] = time.monotonic() + FOR_A_WHILE
        if self._chance.random() < 0.5:
            self._try(cap, max_active_jobs=1)
        else:
            self._try(cap, enabled=False)

    def tend(self, *, everything: bool = False) -> None:
        """Take back what has been so for a while."""
        for cap, until in list(self._changed.items()):
            over = everything or until <= time.monotonic()
            if over and self._try(cap, max_active_jobs=cap, enabled=True):
                del self._changed[cap]

    def relent(self) -> None:
        """Take everything back."""
        while self._changed:
            self.tend(everything=True)

    def _try(self, cap: int, **values: Any) -> bool:
        try:
            self.hw.set_group(f"cap-{cap}", **values)
        except (*TRANSIENT, HeadwayError):
            return False
        return True
