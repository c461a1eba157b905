-- Where each execution was sent; headway's own workers are 'local'.
ALTER TABLE headway_execution ADD COLUMN task_server TEXT DEFAULT 'local' NOT NULL;

ALTER TABLE headway_execution_history ADD COLUMN task_server TEXT DEFAULT 'local' NOT NULL;

-- The queue of the own workers; what waits elsewhere is claimed by its id.
DROP INDEX headway_execution_pending;

CREATE INDEX headway_execution_pending ON headway_execution (priority DESC, id) WHERE state = 'pending' AND task_server = 'local';

-- What a process sends to which task server.
ALTER TABLE headway_server ADD COLUMN routes TEXT DEFAULT '{}' NOT NULL;

DROP VIEW headway_work_queue_entries;

DROP VIEW headway_executions;

CREATE VIEW headway_executions AS
SELECT
    id, entry_id, manifest_id, group_id, external_id, group_name, workflow, input_type, input,
    source, priority, queued_at, scheduled_at, scheduled_for, parents_seen, attempt,
    max_attempts, dispatch_attempts, crashes, dead_letter_id, state, owner, dispatched_at,
    started_at, cancel_requested, cancel_reason, running_step, step_started_at, progress,
    progress_note, CAST(NULL AS TIMESTAMP WITH TIME ZONE) AS finished_at, NULL AS failure_step,
    NULL AS failure_type, NULL AS failure_message, NULL AS failure_traceback, NULL AS output,
    task_server
FROM headway_execution
UNION ALL
SELECT
    id, entry_id, manifest_id, group_id, external_id, group_name, workflow, input_type, input,
    source, priority, queued_at, scheduled_at, scheduled_for, parents_seen, attempt,
    max_attempts, dispatch_attempts, crashes, dead_letter_id, state, owner, dispatched_at,
    started_at, cancel_requested, cancel_reason, running_step, step_started_at, progress,
    progress_note, finished_at, failure_step, failure_type, failure_message, failure_traceback,
    output, task_server
FROM headway_execution_history;

-- A dispatched entry is folded into its execution; this view keeps its fields readable: the row in
-- the queue if there is one, otherwise the newest attempt.
CREATE VIEW headway_work_queue_entries AS
SELECT
    id, manifest_id, group_id, workflow, source, status, priority, created_at, scheduled_at,
    CAST(NULL AS BIGINT) AS execution_id, CAST(NULL AS TIMESTAMP WITH TIME ZONE) AS
    dispatched_at
FROM headway_work_queue
UNION ALL
SELECT
    entry_id, manifest_id, group_id, workflow, source, 'dispatched', priority, queued_at,
    scheduled_at, id, dispatched_at
FROM headway_executions AS attempt
WHERE NOT EXISTS (SELECT 1 FROM headway_work_queue AS entry WHERE entry.id = attempt.entry_id)
    AND NOT EXISTS (
        SELECT 1 FROM headway_executions AS newer
        WHERE newer.entry_id = attempt.entry_id AND newer.id > attempt.id
    );
