-- How far a wake-up for a whole group, or for all children of a parent, has come.
ALTER TABLE headway_wake ADD COLUMN after_id INTEGER DEFAULT 0 NOT NULL;

DROP INDEX headway_manifest_of_group;

CREATE INDEX headway_manifest_of_group ON headway_manifest (group_id, id);

DROP INDEX headway_dependency_of_parent;

CREATE INDEX headway_dependency_of_parent ON headway_dependency (parent_id, child_id);
