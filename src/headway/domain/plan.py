"""The plan: what applying a declaration would do to what is there, compared without writing.

Three values meet: what the code said last time, what it says now, and what is in force. A value
that somebody changed at run time stays until the code's own moves.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from headway.domain.declaration import (
    Declaration,
    check_owner,
    declared_group,
    declared_manifest,
    declared_manifests,
)
from headway.domain.field_changes import FieldChange, differences, in_words, shortened, switch
from headway.domain.manifest import Group, Manifest
from headway.domain.preview import how_it_runs

GROUP_FIELDS = ("max_active_jobs", "priority", "enabled")
TOLD_WHEN_NEW = ("runs", "exclusions", "time zone")


@dataclass(frozen=True)
class KnownManifest:
    """A manifest as the database has it; a parent that was removed is None."""

    declared: str | None
    owner: str
    enabled: bool = True
    parents: tuple[str | None, ...] = ()
    succeeded: bool = False


@dataclass(frozen=True)
class KnownGroup:
    """A group as the database has it."""

    declared: str | None
    max_active_jobs: int | None = None
    priority: int = 0
    enabled: bool = True


@dataclass(frozen=True)
class Known:
    """What the database has of a declaration; ``outdated`` if a later one has replaced it."""

    manifests: Mapping[str, KnownManifest] = field(default_factory=dict)
    groups: Mapping[str, KnownGroup] = field(default_factory=dict)
    outdated: bool = False


@dataclass(frozen=True)
class Change:
    """What happens to one manifest, and how much of its work is queued and running.

    >>> Change("load", (FieldChange("priority", "0", "5"),), queued=2).running
    0
    """

    external_id: str
    fields: tuple[FieldChange, ...] = ()
    queued: int = 0
    running: int = 0


@dataclass(frozen=True)
class GroupChange:
    """What happens to one group that is declared, and not merely named."""

    name: str
    fields: tuple[FieldChange, ...]
    new: bool = False


@dataclass(frozen=True)
class Kept:
    """A value set by an operator that stays, because the code's own has not moved."""

    subject: str
    name: str
    value: str
    declared: str


@dataclass(frozen=True)
class Stranded:
    """Queued entries of one manifest that the declared code can never run; *entry_id* is the first.

    >>> Stranded("load-users", "load", "workflow 'load' is not registered", 2, 7).count
    2
    """

    external_id: str
    workflow: str
    reason: str
    count: int
    entry_id: int


@dataclass(frozen=True)
class Plan:
    """What applying would do; ``kept_back`` are removals that need to be allowed.

    >>> Plan("warehouse", unchanged=3).has_changes
    False
    """

    application: str
    created: tuple[Change, ...] = ()
    changed: tuple[Change, ...] = ()
    removed: tuple[Change, ...] = ()
    unchanged: int = 0
    kept_back: tuple[Change, ...] = ()
    groups: tuple[GroupChange, ...] = ()
    kept: tuple[Kept, ...] = ()
    outdated: bool = False
    stranded: tuple[Stranded, ...] = ()

    @property
    def has_changes(self) -> bool:
        """Whether anything at all would be different."""
        touched = (self.created, self.changed, self.removed, self.kept_back, self.groups)
        return any(touched)

    def concerned(self) -> set[str]:
        """The manifests whose queued and running work matters here."""
        listed = (*self.changed, *self.removed, *self.kept_back)
        return {change.external_id for change in listed}

    def with_stranded(self, found: Iterable[Stranded]) -> "Plan":
        """This plan, with what is *found* stranded of the manifests that stay."""
        gone = {change.external_id for change in (*self.removed, *self.kept_back)}
        kept = tuple(one for one in found if one.external_id not in gone)
        return replace(self, stranded=kept)

    def with_work(self, queued: Mapping[str, int], running: Mapping[str, int]) -> "Plan":
        """This plan, with how much is queued and running of each manifest."""

        def counted(changes: tuple[Change, ...]) -> tuple[Change, ...]:
            return tuple(
                replace(
                    one,
                    queued=queued.get(one.external_id, 0),
                    running=running.get(one.external_id, 0),
                )
                for one in changes
            )

        return replace(
            self,
            changed=counted(self.changed),
            removed=counted(self.removed),
            kept_back=counted(self.kept_back),
        )


def removes_too_much(gone: int, owned: int) -> bool:
    """Whether removing *gone* of *owned* is more than a start does on its own.

    >>> removes_too_much(50, 100), removes_too_much(51, 100)
    (False, True)
    """
    return gone * 2 > owned


def compare(wanted: Declaration, known: Known) -> Plan:
    """What applying *wanted* to *known* would do.

    >>> compare(Declaration("warehouse", {}, ()), Known()).has_changes
    False
    """
    created, changed, kept = [], [], list(_kept_in_groups(wanted, known))
    texts = declared_manifests(wanted.manifests)
    for item, declared in zip(wanted.manifests, texts, strict=True):
        found = known.manifests.get(item.external_id)
        if found is None:
            created.append(_new(item))
            continue
        check_owner(item.external_id, found.owner, wanted.application)
        same = found.declared == declared
        if same and found.enabled == item.enabled and set(found.parents) == set(item.parents):
            continue  # nothing to take apart: the common case, a hundred thousand times
        before, after = json.loads(found.declared or "{}"), json.loads(declared)
        fields = _changed_fields(found, item, before, after)
        if fields or not same:
            changed.append(Change(item.external_id, fields))
        kept.extend(_kept_switch(item.external_id, found, before, after))
    gone, owned = _undeclared(wanted, known)
    too_much = removes_too_much(len(gone), owned)
    return Plan(
        wanted.application,
        created=tuple(created),
        changed=tuple(changed),
        removed=() if too_much else gone,
        unchanged=len(wanted.manifests) - len(created) - len(changed),
        kept_back=gone if too_much else (),
        groups=tuple(_group_changes(wanted, known)),
        kept=tuple(kept),
        outdated=known.outdated,
    )


def _new(item: Manifest) -> Change:
    said = in_words(json.loads(declared_manifest(item)))
    said["runs"] = how_it_runs(item) if item.parents else said["runs"]
    told = [name for name in TOLD_WHEN_NEW if said[name] not in ("none", "default")]
    fields = [FieldChange(name, None, shortened(said[name], "")[0]) for name in told]
    if item.group.name != item.external_id:
        fields.append(FieldChange("group", None, item.group.name))
    if not item.enabled:
        fields.append(FieldChange("enabled", None, "no"))
    return Change(item.external_id, tuple(fields))


def _undeclared(wanted: Declaration, known: Known) -> tuple[tuple[Change, ...], int]:
    named = {item.external_id for item in wanted.manifests}
    owned = [key for key, one in known.manifests.items() if one.owner == wanted.application]
    return tuple(Change(key) for key in sorted(owned) if key not in named), len(owned)


def _changed_fields(
    found: KnownManifest, item: Manifest, before: Mapping[str, Any], after: Mapping[str, Any]
) -> tuple[FieldChange, ...]:
    fields = [] if before == after else [*differences(before, after)]
    if set(found.parents) != set(item.parents):
        fields.append(_parents(found.parents, item.parents))
    if before.get("enabled") != after["enabled"]:
        was = before.get("enabled", found.enabled)
        lost = None if found.enabled in (was, after["enabled"]) else switch(found.enabled)
        fields.append(FieldChange("enabled", switch(was), switch(after["enabled"]), lost))
    return tuple(fields)


def _parents(before: tuple[str | None, ...], after: tuple[str, ...]) -> FieldChange:
    was = ", ".join(sorted(one or "(removed)" for one in before))
    return FieldChange("after", *shortened(was or "nothing", ", ".join(after) or "nothing"))


def _kept_switch(
    external_id: str, found: KnownManifest, before: Mapping[str, Any], after: Mapping[str, Any]
) -> Iterator[Kept]:
    """One that runs once switches itself off when it is done; nobody has to be told."""
    once = after["kind"] == "once"
    set_going = once and (found.succeeded or before.get("schedule") != after["schedule"])
    same = before.get("enabled") == after["enabled"]
    if same and found.enabled != after["enabled"] and not set_going:
        yield Kept(external_id, "enabled", switch(found.enabled), switch(after["enabled"]))


def _group_changes(wanted: Declaration, known: Known) -> Iterator[GroupChange]:
    for name in sorted(wanted.groups):
        group, found = wanted.groups[name], known.groups.get(name)
        if found is None:
            new = [FieldChange(_label(one), None, _shown(group, one)) for one in GROUP_FIELDS]
            yield GroupChange(name, tuple(new), new=True)
        elif found.declared != declared_group(group):
            yield GroupChange(name, tuple(_moved(found, group)))


def _moved(found: KnownGroup, group: Group) -> Iterator[FieldChange]:
    before = json.loads(found.declared or "{}")
    for one in GROUP_FIELDS:
        was = before.get(one, getattr(found, one))
        if was != getattr(group, one):
            lost = getattr(found, one) not in (was, getattr(group, one))
            operators = _shown(found, one) if lost else None
            yield FieldChange(_label(one), _text(was), _shown(group, one), operators)


def _kept_in_groups(wanted: Declaration, known: Known) -> Iterator[Kept]:
    for name in sorted(wanted.groups):
        group, found = wanted.groups[name], known.groups.get(name)
        before = json.loads((found and found.declared) or "{}")
        for one in GROUP_FIELDS:
            value = getattr(group, one)
            if found and before.get(one, ...) == value and getattr(found, one) != value:
                yield Kept(f"group {name}", _label(one), _shown(found, one), _text(value))


def _label(name: str) -> str:
    return name.replace("_", " ")


def _shown(group: Group | KnownGroup, name: str) -> str:
    return _text(getattr(group, name))


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return switch(value)
    return "no cap" if value is None else str(value)
