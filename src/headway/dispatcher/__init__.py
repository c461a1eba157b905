"""JobDispatcher: the only reader of the work queue, the only writer of pending executions.

Everything that wants to run passes this gate; limits are counted and taken under one lock.
"""
