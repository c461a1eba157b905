"""Steps of isolated workflows, as their process gets them: by module and name.

``headway check`` refuses the steps that cannot be sent like that; a worker warns of them when it
starts, and at run time such a step fails the run. A decorator runs before its function is bound in
the module, so ``@hw.workflow`` itself cannot know.
"""

import pickle
import sys
from collections.abc import Collection
from operator import attrgetter
from typing import Any

from headway.definition.registry import Registry
from headway.domain.text import printable
from headway.errors import DefinitionError
from headway.observe import Observer
from headway.steps import Step
from headway.workflow import Workflow

REASON_LIMIT = 300


def pickled(workflow: Workflow[Any]) -> bytes:
    """Return the steps by their names, for another process to import.

    >>> from os.path import basename
    >>> b"basename" in pickled(Workflow("strip", (basename,), context_type=dict))
    True
    """
    for step in workflow.steps:
        _check(workflow.name, step)
    return pickle.dumps(tuple(step.function for step in workflow.steps))


def problems(registry: Registry, names: Collection[str]) -> dict[str, DefinitionError]:
    """Return the isolated workflows of these *names* whose process cannot import a step, and why.

    >>> problems(Registry(), [])
    {}
    """
    found = {}
    for name in sorted(names):
        registered = registry.find(name)
        if registered.isolation is None:
            continue
        try:
            pickled(registered.workflow)
        except DefinitionError as error:
            found[name] = error
    return found


def warn(registry: Registry, names: Collection[str], observer: Observer) -> None:
    """Emit ``workflow.unimportable`` for each of these *names* whose every run will fail.

    >>> warn(Registry(), [], Observer())
    """
    for name, error in problems(registry, names).items():
        observer.emit("workflow.unimportable", workflow=name, reason=str(error))


def _check(workflow: str, step: Step) -> None:
    try:
        pickle.dumps(step.function)
    except Exception as error:  # a callable object may raise anything while it is pickled
        raise DefinitionError(
            f"workflow {workflow!r}: isolated = True: step {step.name!r}: {_why(step, error)}"
        ) from error


def _why(step: Step, error: Exception) -> str:
    module = getattr(step.function, "__module__", None)
    name = getattr(step.function, "__qualname__", None)
    try:
        bound = attrgetter(str(name))(sys.modules[str(module)])
    except (KeyError, AttributeError):
        bound = step.function
    if bound is step.function:
        told = printable(" ".join(str(error).split()), REASON_LIMIT)
        return (
            f"its process cannot import it ({told}); define it with def at the top of a module, "
            "under its own name"
        )
    return (
        f"its process finds another object as {module}.{name}, because of a second def of this "
        "name or a decorator above @hw.workflow; give the function a name of its own and write "
        "@hw.workflow above all other decorators"
    )
