-- Manifests that may run beside themselves.
ALTER TABLE headway_manifest ADD COLUMN allow_overlap BOOLEAN DEFAULT 0 NOT NULL;

-- Their live runs; those of all others are in the unique index, and none is in both.
CREATE INDEX headway_execution_overlapping ON headway_execution (manifest_id) WHERE NOT single_flight;
