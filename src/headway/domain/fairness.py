"""Sharing a limited number of places among groups, so that no group crowds out another."""

from collections.abc import Mapping


def fair_shares(
    wanted: Mapping[int, int], priorities: Mapping[int, int], limit: int
) -> dict[int, int]:
    """How many places each group gets: an equal base, what is left by priority, then by id.

    With more groups than places the base is zero and the places go round by priority.

    >>> fair_shares({1: 5000, 2: 15}, {1: 0, 2: 0}, limit=200)
    {1: 185, 2: 15}
    """
    if not wanted:
        return {}
    base = limit // len(wanted)
    shares = {group: min(count, base) for group, count in wanted.items()}
    left = limit - sum(shares.values())
    hungry = sorted(wanted, key=lambda group: (-priorities[group], group))
    if base == 0:
        for group in hungry[:left]:
            shares[group] = 1
        return shares
    for group in hungry:
        extra = min(wanted[group] - shares[group], left)
        shares[group] += extra
        left -= extra
    return shares
