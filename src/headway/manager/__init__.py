"""ManifestManager: reads manifests, writes work queue entries and dead letters.

It decides what is due and never dispatches anything; capacity is the dispatcher's concern.
"""
