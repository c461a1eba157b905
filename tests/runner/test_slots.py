"""The places of a pool: kept, taken and given back, and whoever asked in vain hears of it."""

import asyncio

from headway.runner.offers import Offers
from headway.runner.slots import Slots
from tests.builders import PATIENCE


def test_what_comes_takes_as_many_places_as_it_uses() -> None:
    slots = Slots(3)
    kept = slots.keep()
    assert kept == (1, 3)
    assert (slots.keep(), slots.free) == (None, 0)
    slots.fill(1, used=2)
    assert (slots.free, slots.keep()) == (1, (2, 1))
    slots.fill(2)
    slots.leave(2)
    assert slots.free == 3


def test_what_is_only_announced_keeps_no_place() -> None:
    slots = Slots(3)
    key = slots.announce()
    assert (slots.free, slots.on_their_way) == (3, frozenset({key}))
    slots.fill(key)
    assert (slots.free, slots.on_their_way) == (3, frozenset())


def test_who_asked_in_vain_is_to_be_told_once_if_a_place_is_left() -> None:
    slots = Slots(2)
    for asked, used, told in [(True, 1, True), (False, 0, False), (True, 1, False)]:
        kept = slots.keep()
        assert kept is not None
        if asked:
            assert slots.free == 0
        assert slots.fill(kept[0], used) is told, (asked, used)


def test_who_finds_all_places_taken_did_not_ask_in_vain() -> None:
    """It hears of it when a run ends."""
    slots = Slots(1)
    kept = slots.keep()
    assert kept is not None
    slots.fill(kept[0], used=1)
    assert slots.free == 0
    slots.leave()
    kept = slots.keep()
    assert kept is not None
    assert not slots.fill(kept[0])


def test_once_closed_nobody_gets_a_place_and_what_is_on_its_way_still_comes() -> None:
    slots = Slots(2)
    kept = slots.keep()
    assert kept is not None
    slots.close()
    assert slots.on_their_way == frozenset({kept[0]})
    slots.fill(kept[0], used=1)
    assert (slots.free, slots.keep(), slots.on_their_way) == (0, None, frozenset())


def test_without_a_pulse_there_always_may_be_something() -> None:
    async def main() -> None:
        await Offers(pulsed=False).wait(asyncio.Event(), 0.0)

    asyncio.run(asyncio.wait_for(main(), PATIENCE))
    assert Offers(pulsed=False).look


def test_a_pulse_says_what_there_is() -> None:
    offers = Offers(pulsed=True)
    for claim, look in [(True, False), (False, True), (False, False), (True, True)]:
        offers.take(claim=claim, look=look)
        assert offers.look is (claim or look), "what waits may have to be claimed alone"


async def waits(offers: Offers, woken: asyncio.Event) -> bool:
    """Whether it goes on waiting when its interval has long been over."""
    waiting = asyncio.create_task(offers.wait(woken, 0.0))
    await asyncio.wait([waiting], timeout=0.05)
    going_on = not waiting.done()
    waiting.cancel()
    await asyncio.wait([waiting])
    return going_on


def test_with_a_pulse_a_pool_waits_until_there_is_something_to_claim() -> None:
    async def main() -> None:
        offers, woken = Offers(pulsed=True), asyncio.Event()
        assert await waits(offers, woken)
        offers.take(claim=False, look=True)
        assert await waits(offers, woken)
        offers.take(claim=True, look=False)
        assert not await waits(offers, woken)
        assert await waits(offers, woken), "what was offered once is claimed once"
        woken.set()
        assert not await waits(offers, woken)
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}, "nothing is left waiting"

    asyncio.run(main())
