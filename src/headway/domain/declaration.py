"""A declaration: everything one application says should exist, as one comparable value."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from headway.domain.exclusion_json import exclusions_to_json
from headway.domain.manifest import Group, Manifest
from headway.domain.retry import RetryPolicy
from headway.domain.schedule import schedule_to_fields
from headway.domain.time_options import TimeOptions
from headway.errors import OwnedByAnother


@dataclass(frozen=True)
class Declaration:
    """The groups and manifests of one application.

    ``groups`` holds only groups declared with :class:`Group`; a group merely named by a manifest
    keeps whatever it has in the database.

    >>> Declaration("warehouse", {}, ()).digest() == Declaration("warehouse", {}, ()).digest()
    True
    """

    application: str
    groups: Mapping[str, Group]
    manifests: tuple[Manifest, ...]

    def digest(self) -> str:
        """Equal digests mean equal declarations."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        hashed = hashlib.sha256(self.application.encode())
        for name in sorted(self.groups):
            hashed.update(declared_group(self.groups[name]).encode())
        for text in declared_manifests(self.manifests):
            hashed.update(text.encode())
        return hashed.hexdigest()


def check_owner(external_id: str, owner: str, application: str) -> None:
    """Refuse to declare what another application owns; run time and code of one are the same.

    >>> check_owner("load", "warehouse:runtime", "warehouse")
    """
    theirs = owner.partition(":")[0]
    if theirs != application.partition(":")[0]:
        raise OwnedByAnother(external_id, theirs)


def declared_group(group: Group) -> str:
    """What the code says about a group, as the text kept beside its row.

    >>> declared_group(Group("etl"))
    '{"enabled":true,"max_active_jobs":null,"name":"etl","priority":0}'
    """
    return _canonical(
        {
            "name": group.name,
            "max_active_jobs": group.max_active_jobs,
            "priority": group.priority,
            "enabled": group.enabled,
        }
    )


def declared_manifest(manifest: Manifest) -> str:
    """What the code says about a manifest, as the text kept beside its row."""
    return next(declared_manifests([manifest]))


def declared_manifests(manifests: Iterable[Manifest]) -> Iterator[str]:
    """The same of many: what one has from the same batch as the one before is told once."""
    before: Manifest | None = None
    start = to_input = to_parents = end = ""
    for one in manifests:
        if before is None or not one.is_like(before):
            start, to_input, to_parents, end = _told_but_for_its_own(one)
        before = one
        name, input = _quoted(one.external_id), _quoted(one.input)
        parents = _canonical(one.parents) if one.parents else "[]"
        yield f"{start}{name}{to_input}{input}{to_parents}{parents}{end}"


def _told_but_for_its_own(manifest: Manifest) -> list[str]:
    """The text of *manifest*, cut where its external id, its input and its parents belong."""
    text = _canonical(
        {
            "external_id": _GAP,
            "workflow": manifest.workflow,
            "input": _GAP,
            "input_type": manifest.input_type,
            "kind": manifest.kind,
            "schedule": schedule_to_fields(manifest.schedule),
            "time": _told(manifest.time),
            "group": manifest.group.name,
            "parents": _GAP,
            "join": manifest.join,
            "when_busy": manifest.when_busy,
            "batch": manifest.batch,
            "priority": manifest.priority,
            "max_retries": manifest.max_retries,
            "retry": _retry_told(manifest.retry) if manifest.retry else None,
            "timeout": manifest.timeout.total_seconds() if manifest.timeout else None,
            "enabled": manifest.enabled,
        }
        # Told only where it is set: the text of all others is what it was before there was such.
        | ({"allow_overlap": True} if manifest.allow_overlap else {})
    )
    return text.split(_quoted(_GAP))


def _told(time: TimeOptions) -> dict[str, Any]:
    """The time options that are set; an empty dictionary is the common case."""
    told = {name: value for name, value in vars(time).items() if value not in (None, ())}
    if time.exclusions:
        told["exclusions"] = exclusions_to_json(time.exclusions)
    return told


_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=str).encode
_quoted = json.encoder.encode_basestring_ascii
# No name, type or schedule is this.
_GAP = "\0"


def _retry_told(retry: RetryPolicy) -> str:
    """What was not there in earlier versions is told only if it is used: their texts stay equal."""
    return repr(retry).replace(", jitter=0.0)", ")")
