-- Entries queued for later stay out of the order that the dispatcher reads.
ALTER TABLE headway_work_queue ADD COLUMN delayed BOOLEAN DEFAULT 0 NOT NULL;

UPDATE headway_work_queue SET delayed = 1 WHERE status = 'queued' AND scheduled_at IS NOT NULL;

DROP INDEX headway_work_queue_order;

CREATE INDEX headway_work_queue_order ON headway_work_queue (group_id, priority DESC, created_at, id) WHERE status = 'queued' AND NOT delayed;

CREATE INDEX headway_work_queue_delayed ON headway_work_queue (scheduled_at) WHERE status = 'queued' AND delayed;

-- The first entry of a manifest is found without reading its others.
DROP INDEX headway_work_queue_of_manifest;

CREATE INDEX headway_work_queue_of_manifest ON headway_work_queue (manifest_id, priority DESC, created_at, id) WHERE status = 'queued';

-- When the dispatcher last found a group full or disabled while something of it was queued.
ALTER TABLE headway_manifest_group ADD COLUMN last_shut_at BIGINT;
