"""Runs in processes of their own: they can be killed, and what they break is theirs alone.

The worker's side is ``supervision`` (what is said and when time is up) over ``process`` (the
process itself); the other side is ``child``. ``messages`` is all that passes between them.
"""
