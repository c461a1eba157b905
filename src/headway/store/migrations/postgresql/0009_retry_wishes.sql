-- What a job itself says about trying again: never, or not before.
ALTER TABLE headway_execution_history ADD COLUMN final BOOLEAN DEFAULT false NOT NULL;

ALTER TABLE headway_execution_history ADD COLUMN retry_at TIMESTAMP WITH TIME ZONE;

-- Retries of many manifests that failed together, spread.
ALTER TABLE headway_manifest ADD COLUMN retry_jitter FLOAT;
