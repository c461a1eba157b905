"""Numbers that callers give, checked."""

from headway.domain.text import shown
from headway.errors import DefinitionError

MOST_NODES = 500
MOST_BARS = 2_000


def checked_number(name: str, value: int, most: int) -> int:
    """*value* if it is a whole number from 1 to *most*, else an error that says so.

    >>> checked_number("last", 20, 50)
    20
    """
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or not 1 <= value <= most:
        raise DefinitionError(
            f"{name} = {shown(value)}: must be a whole number from 1 to {most}; "
            f"for example {min(20, most)}"
        )
    return value


def checked_nodes(limit: int) -> int:
    """How many nodes a graph may have.

    >>> checked_nodes(100)
    100
    """
    return checked_number("limit", limit, MOST_NODES)
