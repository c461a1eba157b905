"""ManifestManager: reads manifests, ends runs that take too long, writes queue entries and dead
letters.

It decides what is due and never dispatches anything; capacity is the dispatcher's concern.

To read it: ``cycle`` has the seven steps as one tuple and runs them, ``state`` is what they pass;
``load``, ``reap`` and ``queue`` are the steps, ``decide`` is what they decide by, without a
database. ``sweep`` is a safety net beside the cycle.

A manifest is looked at when its ``wake_at`` has come, which only the manager writes: a time, or
None to sleep until something wakes it. Whatever may make a manifest due sooner (a run that ended, a
parent's success, a guard that was lifted) leaves a row in the wake inbox, which the next cycle
reads first. So a manifest that was queued, or is held by a guard, sleeps without a time.
"""
