"""Sharing a limited number of places among groups, so that no group crowds out another."""

from collections.abc import Mapping


def fair_shares(
    wanted: Mapping[int, int], priorities: Mapping[int, int], limit: int, after: int = 0
) -> dict[int, int]:
    """How many places each group gets: an equal base, what is left by priority, then by id.

    With more groups than places each gets one in turn, beginning with the first *after* the group
    that was served last: by priority alone the lowest would wait for ever.

    >>> fair_shares({1: 5000, 2: 15}, {1: 0, 2: 0}, limit=200)
    {1: 185, 2: 15}
    >>> fair_shares({1: 9, 2: 9, 3: 9}, {1: 5, 2: 0, 3: 0}, limit=2, after=1)
    {1: 0, 2: 1, 3: 1}
    """
    if not wanted:
        return {}
    base = limit // len(wanted)
    if base == 0:
        served = _in_turn(wanted, after)[:limit]
        return {group: int(group in served) for group in wanted}
    shares = {group: min(count, base) for group, count in wanted.items()}
    left = limit - sum(shares.values())
    for group in sorted(wanted, key=lambda group: (-priorities[group], group)):
        extra = min(wanted[group] - shares[group], left)
        shares[group] += extra
        left -= extra
    return shares


def last_served(shares: Mapping[int, int], after: int = 0) -> int:
    """The group at which a round that began *after* some group ended, to go on from there.

    >>> last_served({1: 1, 2: 0, 3: 1}, after=2)
    1
    """
    served = [group for group, share in shares.items() if share]
    return _in_turn(dict.fromkeys(served, 1), after)[-1] if served else after


def _in_turn(groups: Mapping[int, int], after: int) -> list[int]:
    return sorted(groups, key=lambda group: (group <= after, group))
