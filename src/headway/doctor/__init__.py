"""The doctor: looks at a live database for what must not be, says it in a sentence, repairs it.

To read it: ``checks`` has every check as one tuple, ``work``, ``definitions``, ``deployment`` and
``database`` are the checks by theme, ``examination`` goes through them. A check finds rows and
names them for a person; all SQL is in ``store.examining_…``.
"""
