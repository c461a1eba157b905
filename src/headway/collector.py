"""Python's collector of cycles in a process that is headway's own.

It looks at all objects there are again and again, and a worker makes thousands a second that need
no collector: they form no cycles. Without this a quarter of a short job's time goes to those looks
(docs/decisions/022).
"""

import gc

# New objects between two looks at the new ones, and how many looks until the older ones are due.
NEW_OBJECTS = 50_000
LOOKS_AT_NEW = 20
LOOKS_AT_OLDER = 50


def spare_the_collector() -> None:
    """Leave what is loaded out of every look, and look less often; for a process of headway's own.

    Called once the application is loaded. Inside somebody else's process nothing is changed.

    >>> spare_the_collector()  # doctest: +SKIP
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS, LOOKS_AT_NEW, LOOKS_AT_OLDER)
