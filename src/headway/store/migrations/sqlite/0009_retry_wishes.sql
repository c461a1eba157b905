-- What a job itself says about trying again: never, or not before.
ALTER TABLE headway_execution_history ADD COLUMN final BOOLEAN DEFAULT 0 NOT NULL;

ALTER TABLE headway_execution_history ADD COLUMN retry_at BIGINT;

-- Retries of many manifests that failed together, spread.
ALTER TABLE headway_manifest ADD COLUMN retry_jitter FLOAT;
