"""A declaration: everything one application says should exist, as one comparable value."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headway.domain.exclusion_json import exclusions_to_json
from headway.domain.manifest import Group, Manifest
from headway.domain.schedule import schedule_to_fields
from headway.domain.time_options import TimeOptions


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
        hashed = hashlib.sha256(self.application.encode())
        for name in sorted(self.groups):
            hashed.update(declared_group(self.groups[name]).encode())
        for manifest in self.manifests:
            hashed.update(declared_manifest(manifest).encode())
        return hashed.hexdigest()


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
    return _canonical(
        {
            "external_id": manifest.external_id,
            "workflow": manifest.workflow,
            "input": manifest.input,
            "input_type": manifest.input_type,
            "kind": manifest.kind,
            "schedule": schedule_to_fields(manifest.schedule),
            "time": _told(manifest.time),
            "group": manifest.group.name,
            "parents": list(manifest.parents),
            "join": manifest.join,
            "when_busy": manifest.when_busy,
            "batch": manifest.batch,
            "priority": manifest.priority,
            "max_retries": manifest.max_retries,
            "retry": repr(manifest.retry) if manifest.retry else None,
            "timeout": manifest.timeout.total_seconds() if manifest.timeout else None,
            "enabled": manifest.enabled,
        }
    )


def _told(time: TimeOptions) -> dict[str, Any]:
    """The time options that are set; an empty dictionary is the common case."""
    told = {name: value for name, value in vars(time).items() if value not in (None, ())}
    if time.exclusions:
        told["exclusions"] = exclusions_to_json(time.exclusions)
    return told


def _canonical(fields: dict[str, Any]) -> str:
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), default=str)
