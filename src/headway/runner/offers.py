"""What the pulse of a process says to its workers."""

import asyncio

from headway.runner.threads import happens


class Offers:
    """Whether there is something to claim or to look at; without a pulse there always may be.

    >>> Offers(pulsed=False).look, Offers(pulsed=True).look
    (True, False)
    """

    def __init__(self, pulsed: bool) -> None:
        self.look = not pulsed
        self._pulsed = pulsed
        self._claim = asyncio.Event()

    def take(self, *, claim: bool, look: bool) -> None:
        """Note what the last pulse said; what waits to be claimed may have to be claimed alone,
        which is a matter for a look."""
        self.look = claim or look
        if claim:
            self._claim.set()

    async def wait(self, woken: asyncio.Event, interval: float) -> None:
        """Until *woken*; or until *interval* is over and there is something to claim."""
        if await happens(woken, within=interval) or not self._pulsed:
            return
        either = [asyncio.create_task(event.wait()) for event in (woken, self._claim)]
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in either:
                task.cancel()
            self._claim.clear()
