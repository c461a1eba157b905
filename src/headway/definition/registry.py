"""The workflows of this process by name: the only way from a stored name to code.

Nothing here imports anything by name: what the database says is looked up, never loaded.
"""

import unicodedata
from collections.abc import Callable, Container, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

from headway.definition.inputs import InputType
from headway.domain.isolation import Isolation
from headway.domain.names import checked_name
from headway.errors import (
    DefinitionError,
    ManifestNotApplied,
    ManifestNotFound,
    UnknownWorkflow,
)
from headway.steps import function_name
from headway.workflow import Workflow

Function = Callable[..., Any]
Reference = str | Workflow[Any] | Function


@dataclass(frozen=True)
class RegisteredWorkflow:
    """A workflow with the type of its input.

    >>> def extract(table: str) -> None: ...
    >>> Registry().register(None, (extract,), context_type=dict).input_type
    InputType(str)
    """

    workflow: Workflow[Any]
    input_type: InputType
    isolation: Isolation | None = None
    keep_output: bool = False
    stop_when_cut_off: bool = False

    @property
    def name(self) -> str:
        """The name it is registered under and stored by.

        >>> def extract(table: str) -> None: ...
        >>> Registry().register("extract-users", (extract,), context_type=dict).name
        'extract-users'
        """
        return self.workflow.name


class Registry:
    """Every workflow this process knows.

    >>> registry = Registry()
    >>> def extract(table: str) -> None: ...
    >>> registered = registry.register("extract", (extract,), context_type=dict)
    >>> registry.find("extract") is registry.find(extract) is registered
    True
    """

    def __init__(self) -> None:
        # External ids that the application declares, whether they are applied or not.
        self.declared: Container[str] = frozenset()
        self._by_name: dict[str, RegisteredWorkflow] = {}
        # Asked for with every start, and seldom another.
        self._sorted_names: tuple[str, ...] = ()
        self._first_steps: Mapping[str, str] = MappingProxyType({})
        self._names_of: dict[Hashable, list[str]] = {}
        self._offered: dict[Hashable, Callable[[], RegisteredWorkflow]] = {}

    def register(
        self,
        name: str | None,
        steps: Function | Iterable[Function],
        context_type: type,
        isolation: Isolation | None = None,
        *,
        keep_output: bool = False,
        stop_when_cut_off: bool = False,
    ) -> RegisteredWorkflow:
        """Make a workflow known; one function needs no name, a chain of steps does.

        The same again changes nothing; other code under a name that is taken is refused.

        >>> def load(table: str) -> None: ...
        >>> Registry().register(None, (load,), context_type=dict).name
        'load'
        """
        functions = (steps,) if callable(steps) else tuple(steps)
        given = checked_name("workflow name", _own_name(functions) if name is None else name)
        workflow: Workflow[Any] = Workflow(given, functions, context_type)
        if isolation is not None:
            _check_importable(workflow)
        wishes = (isolation, keep_output, stop_when_cut_off)
        if known := self._by_name.get(workflow.name):
            _unless_other_code(known, workflow)
            return _unless_run_otherwise(known, wishes)
        registered = RegisteredWorkflow(workflow, _input_type(workflow), *wishes)
        self._by_name[workflow.name] = registered
        self._sorted_names = tuple(sorted(self._by_name))
        steps_now = dict(self._first_steps) | {workflow.name: workflow.steps[0].name}
        self._first_steps = MappingProxyType(steps_now)
        if len(functions) == 1:
            self._names_of.setdefault(_key(functions[0]), []).append(workflow.name)
        return registered

    def offer(self, name: str, function: Function, context_type: type) -> None:
        """Register *function* when somebody first asks for it, by name or by itself: until then
        it is none of the application's own workflows.

        >>> registry = Registry()
        >>> def report() -> None: ...
        >>> registry.offer("own.report", report, context_type=dict)
        >>> registry.names(), registry.find(report).name, registry.names()
        ((), 'own.report', ('own.report',))
        """
        for key in (name, _key(function)):
            self._offered[key] = partial(self.register, name, function, context_type)

    def find(self, reference: Reference) -> RegisteredWorkflow:
        """The workflow of this name, or the one made of this function.

        >>> Registry().find("extract")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        headway.errors.UnknownWorkflow: workflow 'extract' is not registered here; ...
        """
        if isinstance(reference, str) and (known := self._by_name.get(reference)):
            return known
        key = _key(reference) if callable(reference) else reference
        if wanted := self._offered.get(key):
            return wanted()
        name = self._name(reference)
        registered = self._by_name.get(unicodedata.normalize("NFC", name))
        if registered is None:
            raise UnknownWorkflow(name)
        if isinstance(reference, Workflow):
            _unless_other_code(registered, reference)
        return registered

    def not_found(self, external_id: str) -> ManifestNotFound:
        """The error for a manifest that the database does not have.

        >>> print(Registry().not_found("load-users"))
        no manifest has the external id 'load-users'
        """
        is_declared = isinstance(external_id, str) and external_id in self.declared
        return ManifestNotApplied(external_id) if is_declared else ManifestNotFound(external_id)

    def names(self) -> tuple[str, ...]:
        """The names of all workflows, sorted.

        >>> Registry().names()
        ()
        """
        return self._sorted_names

    def first_steps(self) -> Mapping[str, str]:
        """The step each workflow starts with.

        >>> dict(Registry().first_steps())
        {}
        """
        return self._first_steps

    def _name(self, reference: Reference) -> str:
        if isinstance(reference, str):
            return reference
        if isinstance(reference, Workflow):
            return reference.name
        names = self._names_of.get(_key(reference), [])
        if len(names) > 1:
            raise DefinitionError(
                f"function {function_name(reference)!r} is registered as {' and as '.join(names)}; "
                f"name the one you mean: {names[0]!r}"
            )
        if not names:
            raise UnknownWorkflow(function_name(reference))
        return names[0]


def _key(function: Function) -> Hashable:
    # A bound method is another object, but an equal one, each time it is looked up.
    return function if isinstance(function, Hashable) else id(function)


def _own_name(functions: tuple[Function, ...]) -> str:
    if len(functions) != 1:
        raise DefinitionError(
            f"a workflow of {len(functions)} steps needs a name; "
            "write hw.workflow('delta-import', steps=(first, second))"
        )
    name = function_name(functions[0])
    if name == "<lambda>":
        raise DefinitionError(
            "a lambda has no name to register it by; write def, or give a name: "
            "hw.workflow('extract-users', steps=(lambda: ...,))"
        )
    return name


def _input_type(workflow: Workflow[Any]) -> InputType:
    first = workflow.steps[0]
    if first.takes_value and first.value_type in (Any, object):
        raise DefinitionError(
            f"workflow {workflow.name!r}: step {first.name!r} takes a value of no declared type; "
            f"write {first.name}(value: YourType), or dict[str, Any] for any JSON object"
        )
    try:
        return InputType(workflow.input_type)
    except DefinitionError as error:
        raise DefinitionError(f"workflow {workflow.name!r}: {error}") from error.__cause__


def _unless_other_code(known: RegisteredWorkflow, wanted: Workflow[Any]) -> RegisteredWorkflow:
    if known.workflow != wanted:
        raise DefinitionError(
            f"workflow name = {wanted.name!r}: is already registered with other code "
            f"({_described(known.workflow)}, now {_described(wanted)}); "
            f"give one of them another name, for example '{wanted.name}-2'"
        )
    return known


def _unless_run_otherwise(
    known: RegisteredWorkflow, wishes: tuple[Isolation | None, bool, bool]
) -> RegisteredWorkflow:
    if (known.isolation, known.keep_output, known.stop_when_cut_off) != wishes:
        raise DefinitionError(
            f"workflow name = {known.name!r}: is already registered with another isolated=, "
            "max_memory=, keep_output= or stop_when_cut_off=; write the same in both places, for "
            "example isolated=True"
        )
    return known


def _check_importable(workflow: Workflow[Any]) -> None:
    """Another process finds a function by its module and name: inside a function there is none."""
    for step in workflow.steps:
        written = getattr(step.function, "__qualname__", "")
        if "<" in written:
            raise DefinitionError(
                f"workflow {workflow.name!r}: isolated = True: step {step.name!r} is defined "
                "inside a function, where its process cannot import it from; define it with def "
                "at the top of a module"
            )


def _described(workflow: Workflow[Any]) -> str:
    functions = (step.function for step in workflow.steps)
    places = (f"{getattr(f, '__module__', '?')}.{function_name(f)}" for f in functions)
    return " → ".join(places)
