"""What an application has declared so far, kept free of contradictions at every call."""

from collections.abc import Iterable

from headway.definition.terms import Made
from headway.domain.declaration import Declaration
from headway.domain.graph import Edge, check_acyclic
from headway.domain.manifest import Group, Manifest
from headway.errors import DefinitionError


class Collection:
    """The declared manifests and groups of one application."""

    def __init__(self) -> None:
        self._groups: dict[str, Group] = {}
        self._manifests: dict[str, Manifest] = {}
        self._parents: set[str] = set()
        self._between_groups: set[tuple[str, str]] = set()

    def __contains__(self, external_id: object) -> bool:
        return external_id in self._manifests

    def add(self, made: Iterable[Made]) -> None:
        """Take new manifests; if any of them is refused, none of them is taken."""
        groups: dict[str, Group] = {}
        manifests: dict[str, Manifest] = {}
        for one in made:
            self._check_group(groups, one)
            self._check_new(manifests, one.manifest)
            manifests[one.manifest.external_id] = one.manifest
        between = self._check_edges(manifests)
        self._groups.update(groups)
        if self._manifests:
            self._manifests.update(manifests)
        else:
            self._manifests = manifests  # a million of them take memory once, not twice
        self._parents.update(parent for one in manifests.values() for parent in one.parents)
        self._between_groups.update(between)

    def declaration(self, application: str) -> Declaration:
        """Everything declared so far, as one value."""
        return Declaration(application, dict(self._groups), tuple(self._manifests.values()))

    def _check_group(self, groups: dict[str, Group], made: Made) -> None:
        if made.group is None:
            return
        name = made.group.name
        known = self._groups.get(name) or groups.setdefault(name, made.group)
        if known is not made.group and known != made.group:
            raise DefinitionError(
                f"{made.manifest.external_id}: group {name!r} is declared twice with different "
                f"values ({known} and {made.group}); declare it once and name it elsewhere: "
                f"group={name!r}"
            )

    def _check_new(self, manifests: dict[str, Manifest], manifest: Manifest) -> None:
        taken = manifest.external_id
        if taken in self._manifests or taken in manifests:
            raise DefinitionError(
                f"external_id = {taken!r}: is already declared; give each manifest an id of its "
                f"own, for example '{taken}-2'"
            )

    def _check_edges(self, new: dict[str, Manifest]) -> set[tuple[str, str]]:
        """Look for cycles where one could have come about; returns the edges between groups.

        Without a new edge between groups, and with nothing that was named as a parent before it
        was declared, the new manifests are leaves and close no circle.
        """
        edges = [(parent, one) for one in new.values() for parent in one.parents]
        ends = ((self._manifests.get(parent) or new.get(parent), one) for parent, one in edges)
        between = {
            (parent.group.name, one.group.name)
            for parent, one in ends
            if parent and parent.group.name != one.group.name
        }
        forward = any(name in self._parents for name in new) or any(
            parent in new for parent, _ in edges
        )
        if forward or not between <= self._between_groups:
            _check_all(self._manifests | new)
        return between


def _check_all(manifests: dict[str, Manifest]) -> None:
    groups = {one.external_id: one.group.name for one in manifests.values()}
    edges = [Edge(parent, one.external_id) for one in manifests.values() for parent in one.parents]
    check_acyclic(groups, edges)
