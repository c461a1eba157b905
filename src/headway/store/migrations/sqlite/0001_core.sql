CREATE TABLE headway_audit (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    at BIGINT NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT
);

CREATE INDEX headway_audit_at ON headway_audit (at, id);

CREATE TABLE headway_declaration (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    application TEXT NOT NULL,
    digest TEXT NOT NULL,
    manifests INTEGER NOT NULL,
    applied_at BIGINT NOT NULL
);

CREATE INDEX headway_declaration_latest ON headway_declaration (application, id);

CREATE TABLE headway_execution (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    entry_id INTEGER NOT NULL,
    manifest_id INTEGER,
    group_id INTEGER,
    external_id TEXT,
    group_name TEXT,
    workflow TEXT NOT NULL,
    input_type TEXT NOT NULL,
    input TEXT NOT NULL,
    source TEXT NOT NULL,
    priority SMALLINT NOT NULL,
    queued_at BIGINT NOT NULL,
    scheduled_at BIGINT,
    scheduled_for BIGINT,
    parents_seen TEXT,
    attempt INTEGER NOT NULL,
    max_attempts INTEGER NOT NULL,
    dispatch_attempts INTEGER NOT NULL,
    crashes INTEGER NOT NULL,
    dead_letter_id INTEGER,
    state TEXT NOT NULL,
    owner TEXT,
    dispatched_at BIGINT NOT NULL,
    started_at BIGINT,
    cancel_requested BOOLEAN DEFAULT 0 NOT NULL,
    cancel_reason TEXT,
    running_step TEXT,
    step_started_at BIGINT,
    progress FLOAT,
    progress_note TEXT,
    single_flight BOOLEAN DEFAULT 1 NOT NULL,
    CONSTRAINT headway_execution_state CHECK (state IN ('pending', 'in_progress')),
    CONSTRAINT headway_execution_owned CHECK ((state = 'in_progress') = (owner IS NOT NULL AND started_at IS NOT NULL))
);

CREATE INDEX headway_execution_pending ON headway_execution (priority DESC, id) WHERE state = 'pending';

CREATE UNIQUE INDEX headway_execution_single_flight ON headway_execution (manifest_id) WHERE single_flight;

CREATE TABLE headway_execution_history (
    id INTEGER NOT NULL,
    entry_id INTEGER NOT NULL,
    manifest_id INTEGER,
    group_id INTEGER,
    external_id TEXT,
    group_name TEXT,
    workflow TEXT NOT NULL,
    input_type TEXT NOT NULL,
    input TEXT NOT NULL,
    source TEXT NOT NULL,
    priority SMALLINT NOT NULL,
    queued_at BIGINT NOT NULL,
    scheduled_at BIGINT,
    scheduled_for BIGINT,
    parents_seen TEXT,
    attempt INTEGER NOT NULL,
    max_attempts INTEGER NOT NULL,
    dispatch_attempts INTEGER NOT NULL,
    crashes INTEGER NOT NULL,
    dead_letter_id INTEGER,
    state TEXT NOT NULL,
    owner TEXT,
    dispatched_at BIGINT NOT NULL,
    started_at BIGINT,
    cancel_requested BOOLEAN DEFAULT 0 NOT NULL,
    cancel_reason TEXT,
    running_step TEXT,
    step_started_at BIGINT,
    progress FLOAT,
    progress_note TEXT,
    finished_at BIGINT NOT NULL,
    failure_step TEXT,
    failure_type TEXT,
    failure_message TEXT,
    failure_traceback TEXT,
    output TEXT,
    PRIMARY KEY (id),
    CONSTRAINT headway_execution_history_state CHECK (state IN ('completed', 'failed', 'cancelled', 'handed_back')),
    CONSTRAINT headway_execution_history_failure CHECK ((state = 'failed') <= (failure_type IS NOT NULL))
);

CREATE INDEX headway_execution_history_finished ON headway_execution_history (finished_at, id);

CREATE INDEX headway_execution_history_of_entry ON headway_execution_history (entry_id);

CREATE INDEX headway_execution_history_of_manifest ON headway_execution_history (manifest_id, id);

CREATE TABLE headway_manifest_group (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    max_active_jobs INTEGER,
    priority SMALLINT DEFAULT 0 NOT NULL,
    enabled BOOLEAN DEFAULT 1 NOT NULL,
    declared TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    CONSTRAINT headway_manifest_group_cap CHECK (max_active_jobs > 0),
    CONSTRAINT headway_manifest_group_priority CHECK (priority BETWEEN 0 AND 31),
    UNIQUE (name)
);

CREATE TABLE headway_server (
    id TEXT NOT NULL,
    host TEXT NOT NULL,
    pid BIGINT NOT NULL,
    roles TEXT NOT NULL,
    workflows TEXT NOT NULL,
    slots INTEGER NOT NULL,
    started_at BIGINT NOT NULL,
    renewed_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (id)
);

CREATE TABLE headway_wake (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    manifest_id INTEGER,
    group_id INTEGER,
    scope TEXT NOT NULL,
    CONSTRAINT headway_wake_scope CHECK (scope IN ('self', 'children', 'group')),
    CONSTRAINT headway_wake_subject CHECK ((scope = 'group') = (group_id IS NOT NULL) AND (scope = 'group') = (manifest_id IS NULL))
);

CREATE TABLE headway_work_queue (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    manifest_id INTEGER,
    group_id INTEGER,
    workflow TEXT NOT NULL,
    input_type TEXT NOT NULL,
    input TEXT NOT NULL,
    source TEXT NOT NULL,
    status TEXT DEFAULT 'queued' NOT NULL,
    priority SMALLINT DEFAULT 0 NOT NULL,
    created_at BIGINT NOT NULL,
    scheduled_at BIGINT,
    scheduled_for BIGINT,
    parents_seen TEXT,
    attempts INTEGER DEFAULT 0 NOT NULL,
    max_attempts INTEGER DEFAULT 1 NOT NULL,
    dispatch_attempts INTEGER DEFAULT 0 NOT NULL,
    crashes INTEGER DEFAULT 0 NOT NULL,
    dead_letter_id INTEGER,
    ended_at BIGINT,
    ended_reason TEXT,
    CONSTRAINT headway_work_queue_source CHECK (source IN ('schedule', 'dependent', 'activation', 'trigger', 'rerun', 'requeue', 'ad_hoc')),
    CONSTRAINT headway_work_queue_status CHECK (status IN ('queued', 'held', 'cancelled', 'failed')),
    CONSTRAINT headway_work_queue_priority CHECK (priority BETWEEN 0 AND 31),
    CONSTRAINT headway_work_queue_ad_hoc CHECK ((manifest_id IS NULL) = (source = 'ad_hoc'))
);

CREATE INDEX headway_work_queue_of_manifest ON headway_work_queue (manifest_id) WHERE status = 'queued';

CREATE UNIQUE INDEX headway_work_queue_one_activation ON headway_work_queue (manifest_id) WHERE status = 'queued' AND source = 'activation';

CREATE UNIQUE INDEX headway_work_queue_one_held ON headway_work_queue (manifest_id) WHERE status = 'held';

CREATE UNIQUE INDEX headway_work_queue_one_queued ON headway_work_queue (manifest_id) WHERE status = 'queued' AND source IN ('schedule', 'dependent');

CREATE INDEX headway_work_queue_order ON headway_work_queue (group_id, priority DESC, created_at, id) WHERE status = 'queued';

CREATE TABLE headway_manifest (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    external_id TEXT NOT NULL,
    workflow TEXT NOT NULL,
    input_type TEXT NOT NULL,
    input TEXT NOT NULL,
    group_id INTEGER NOT NULL,
    schedule_kind TEXT NOT NULL,
    interval_seconds BIGINT,
    fixed_rate BOOLEAN DEFAULT 0 NOT NULL,
    cron_expression TEXT,
    time_zone TEXT,
    once_at BIGINT,
    priority SMALLINT DEFAULT 0 NOT NULL,
    max_retries INTEGER,
    timeout_seconds BIGINT,
    retry_delay_seconds FLOAT,
    retry_multiplier FLOAT,
    retry_max_delay_seconds FLOAT,
    join_mode TEXT,
    when_busy TEXT,
    misfire_policy TEXT,
    misfire_threshold_seconds BIGINT,
    catch_up_limit INTEGER,
    first_run TEXT,
    variance_seconds BIGINT,
    exclusions TEXT,
    scheduled_since BIGINT NOT NULL,
    enabled BOOLEAN DEFAULT 1 NOT NULL,
    owner TEXT NOT NULL,
    batch TEXT,
    declared TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    removed_at BIGINT,
    CONSTRAINT headway_manifest_kind CHECK (schedule_kind IN ('none', 'interval', 'cron', 'once', 'dependent', 'dormant_dependent')),
    CONSTRAINT headway_manifest_schedule CHECK ((schedule_kind = 'interval') = (interval_seconds IS NOT NULL) AND (schedule_kind = 'cron') = (cron_expression IS NOT NULL) AND (schedule_kind = 'once') = (once_at IS NOT NULL)),
    CONSTRAINT headway_manifest_interval CHECK (interval_seconds > 0),
    CONSTRAINT headway_manifest_priority CHECK (priority BETWEEN 0 AND 31),
    CONSTRAINT headway_manifest_retries CHECK (max_retries >= 0),
    CONSTRAINT headway_manifest_timeout CHECK (timeout_seconds > 0),
    CONSTRAINT headway_manifest_misfire CHECK (misfire_policy IN ('fire_once_now', 'do_nothing', 'catch_up')),
    CONSTRAINT headway_manifest_catch_up CHECK (catch_up_limit BETWEEN 1 AND 10000),
    CONSTRAINT headway_manifest_first_run CHECK (first_run IN ('at_once', 'at_first_occurrence')),
    CONSTRAINT headway_manifest_join CHECK (join_mode IN ('all', 'any')),
    CONSTRAINT headway_manifest_when_busy CHECK (when_busy IN ('skip', 'keep', 'replace', 'reject')),
    FOREIGN KEY(group_id) REFERENCES headway_manifest_group (id)
);

CREATE UNIQUE INDEX headway_manifest_external_id ON headway_manifest (external_id) WHERE removed_at IS NULL;

CREATE INDEX headway_manifest_of_group ON headway_manifest (group_id);

CREATE TABLE headway_dead_letter (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    manifest_id INTEGER NOT NULL,
    status TEXT DEFAULT 'awaiting_intervention' NOT NULL,
    dead_lettered_at BIGINT NOT NULL,
    reason TEXT NOT NULL,
    failures INTEGER NOT NULL,
    execution_id INTEGER,
    input TEXT,
    resolved_at BIGINT,
    resolution_note TEXT,
    retry_execution_id INTEGER,
    CONSTRAINT headway_dead_letter_status CHECK (status IN ('awaiting_intervention', 'retried', 'acknowledged')),
    CONSTRAINT headway_dead_letter_resolved CHECK ((status = 'awaiting_intervention') = (resolved_at IS NULL)),
    FOREIGN KEY(manifest_id) REFERENCES headway_manifest (id)
);

CREATE UNIQUE INDEX headway_dead_letter_awaiting ON headway_dead_letter (manifest_id) WHERE status = 'awaiting_intervention';

CREATE TABLE headway_dependency (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    child_id INTEGER NOT NULL,
    parent_id INTEGER,
    consumed_seq BIGINT DEFAULT 0 NOT NULL,
    CONSTRAINT headway_dependency_not_itself CHECK (child_id <> parent_id),
    FOREIGN KEY(child_id) REFERENCES headway_manifest (id) ON DELETE CASCADE,
    FOREIGN KEY(parent_id) REFERENCES headway_manifest (id) ON DELETE SET NULL
);

CREATE UNIQUE INDEX headway_dependency_edge ON headway_dependency (child_id, parent_id);

CREATE INDEX headway_dependency_of_parent ON headway_dependency (parent_id);

CREATE TABLE headway_manifest_state (
    manifest_id INTEGER NOT NULL,
    wake_at BIGINT,
    settled_until BIGINT,
    last_success_at BIGINT,
    success_seq BIGINT DEFAULT 0 NOT NULL,
    failures_after BIGINT DEFAULT 0 NOT NULL,
    PRIMARY KEY (manifest_id),
    FOREIGN KEY(manifest_id) REFERENCES headway_manifest (id) ON DELETE CASCADE
);

CREATE INDEX headway_manifest_state_wake ON headway_manifest_state (wake_at, manifest_id) WHERE wake_at IS NOT NULL;

CREATE VIEW headway_executions AS
SELECT
    id, entry_id, manifest_id, group_id, external_id, group_name, workflow, input_type, input,
    source, priority, queued_at, scheduled_at, scheduled_for, parents_seen, attempt,
    max_attempts, dispatch_attempts, crashes, dead_letter_id, state, owner, dispatched_at,
    started_at, cancel_requested, cancel_reason, running_step, step_started_at, progress,
    progress_note, NULL AS finished_at, NULL AS failure_step, NULL AS failure_type, NULL AS
    failure_message, NULL AS failure_traceback, NULL AS output
FROM headway_execution
UNION ALL
SELECT
    id, entry_id, manifest_id, group_id, external_id, group_name, workflow, input_type, input,
    source, priority, queued_at, scheduled_at, scheduled_for, parents_seen, attempt,
    max_attempts, dispatch_attempts, crashes, dead_letter_id, state, owner, dispatched_at,
    started_at, cancel_requested, cancel_reason, running_step, step_started_at, progress,
    progress_note, finished_at, failure_step, failure_type, failure_message, failure_traceback,
    output
FROM headway_execution_history;

-- A dispatched entry is folded into its execution; this view keeps its fields readable: the row in
-- the queue if there is one, otherwise the newest attempt.
CREATE VIEW headway_work_queue_entries AS
SELECT
    id, manifest_id, group_id, workflow, source, status, priority, created_at, scheduled_at,
    NULL AS execution_id, NULL AS dispatched_at
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

-- A finished execution is a fact: it may be deleted by retention, never changed.
CREATE TRIGGER headway_execution_history_frozen
BEFORE UPDATE ON headway_execution_history
BEGIN
    SELECT RAISE(ABORT, 'a finished execution cannot be changed');
END;
