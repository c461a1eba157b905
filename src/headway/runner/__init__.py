"""JobRunner and its worker pool: claims pending executions, runs their steps, records the end.

Every write names the execution's owner, so that a process that lost an execution changes nothing.
"""
