"""A declaration: everything one application says should exist, as one comparable value."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headway.domain.manifest import Group, Manifest
from headway.domain.schedule import schedule_to_fields


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
            "schedule": schedule_to_fields(manifest.schedule),
            "group": manifest.group.name,
            "priority": manifest.priority,
            "max_retries": manifest.max_retries,
            "timeout": manifest.timeout.total_seconds() if manifest.timeout else None,
            "enabled": manifest.enabled,
        }
    )


def _canonical(fields: dict[str, Any]) -> str:
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), default=str)
