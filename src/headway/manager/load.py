"""LoadManifests: the candidates of this cycle, as views."""

from dataclasses import replace

from headway.manager.state import ManagerEnv, ManagerState
from headway.store import manifests, wakes


def load_manifests(state: ManagerState, env: ManagerEnv) -> ManagerState:
    """Read the wake inbox, then the manifests whose wake-up time has come, and nothing else."""
    wakes.absorb_wakes(env.tx, env.chunk)
    candidates = manifests.due_candidates(env.tx, env.chunk)
    views = manifests.load_views(env.tx, candidates)
    return replace(
        state,
        candidates=tuple(candidates),
        views={view.manifest_id: view for view in views},
    )
