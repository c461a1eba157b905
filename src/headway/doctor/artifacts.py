"""Checks of what a deployment leaves behind for its operator."""

from headway.doctor.findings import Check, Severity
from headway.store import examining_artifacts as artifacts

NO_STANDING_OBJECTIVE = Check(
    "no-standing-objective",
    Severity.WARNING,
    "These servers run, but the deployment has no standing objective: dead letters and timeouts "
    "leave no pause state, and no page can be built.",
    "restart one of them; a start writes it",
    find=lambda look: artifacts.managers_without_objective(look.tx),
)
UNREADABLE_ARTIFACTS = Check(
    "unreadable-artifacts",
    Severity.ERROR,
    "These artifacts were written by hand and cannot be read, so that whoever asks for them gets "
    "no answer.",
    "correct the rows, or delete them",
    find=lambda look: artifacts.unreadable(look.tx),
)
PARKED_EVENTS = Check(
    "parked-events",
    Severity.WARNING,
    "These requests for a manifest failed so often that they were put aside.",
    "do something about the reason, then put them back: headway azolla unpark",
    find=lambda look: artifacts.parked(look.tx),
)
