-- What has no manifest and no group is not written to the indexes that find those of one.
DROP INDEX headway_execution_history_of_manifest;

CREATE INDEX headway_execution_history_of_manifest ON headway_execution_history (manifest_id, id) WHERE manifest_id IS NOT NULL;

DROP INDEX headway_execution_history_of_group;

CREATE INDEX headway_execution_history_of_group ON headway_execution_history (group_id, id) WHERE group_id IS NOT NULL;

DROP INDEX headway_execution_single_flight;

CREATE UNIQUE INDEX headway_execution_single_flight ON headway_execution (manifest_id) WHERE single_flight AND manifest_id IS NOT NULL;

DROP INDEX headway_work_queue_of_manifest;

CREATE INDEX headway_work_queue_of_manifest ON headway_work_queue (manifest_id, priority DESC, created_at, id) WHERE status = 'queued' AND manifest_id IS NOT NULL;
