CREATE TABLE headway_blocker_ref (
    blocker_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    description TEXT NOT NULL,
    resolved BOOLEAN DEFAULT false NOT NULL,
    PRIMARY KEY (blocker_id),
    CONSTRAINT headway_blocker_ref_kind CHECK (kind IN ('USER_INPUT', 'EXTERNAL_SYSTEM', 'DEPENDENCY_CHANGE', 'DESIGN_DECISION', 'ENVIRONMENT_ACCESS'))
);

CREATE TABLE headway_capture_buffer (
    capture_id TEXT NOT NULL,
    azolla_id TEXT NOT NULL,
    raw_content TEXT NOT NULL,
    source_label TEXT NOT NULL,
    status TEXT DEFAULT 'PENDING' NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    PRIMARY KEY (capture_id),
    CONSTRAINT headway_capture_buffer_status CHECK (status IN ('PENDING', 'PROCESSED'))
);

CREATE INDEX headway_capture_buffer_oldest ON headway_capture_buffer (status, created_at, capture_id);

CREATE TABLE headway_claim_record (
    resource_type TEXT NOT NULL,
    resource_id TEXT NOT NULL,
    owner_id TEXT NOT NULL,
    lease_expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
    heartbeat_at TIMESTAMP WITH TIME ZONE NOT NULL,
    claim_version BIGINT NOT NULL,
    PRIMARY KEY (resource_type, resource_id),
    CONSTRAINT headway_claim_record_resource_type CHECK (resource_type IN ('EVENT', 'WORKORDER')),
    CONSTRAINT headway_claim_record_version CHECK (claim_version >= 0)
);

CREATE TABLE headway_context_snapshot (
    snapshot_id TEXT NOT NULL,
    objective_id TEXT NOT NULL,
    related_yield_refs TEXT DEFAULT '[]' NOT NULL,
    full_prompt_text TEXT NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    metadata TEXT,
    PRIMARY KEY (snapshot_id)
);

CREATE TABLE headway_event (
    event_id TEXT NOT NULL,
    type TEXT NOT NULL,
    resource_id TEXT NOT NULL,
    azolla_id TEXT NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    processed BOOLEAN DEFAULT false NOT NULL,
    terminal_reason TEXT,
    PRIMARY KEY (event_id),
    CONSTRAINT headway_event_type CHECK (type IN ('TICKET_READY', 'CAPTURE_READY', 'MANIFEST_REQUESTED')),
    CONSTRAINT headway_event_terminal_reason CHECK (terminal_reason IN ('SCHEDULED', 'MISSING_TICKET', 'NON_EXECUTABLE_STATUS', 'BLOCKED', 'NO_PENDING_CAPTURES')),
    CONSTRAINT headway_event_ended CHECK (processed = (terminal_reason IS NOT NULL))
);

CREATE UNIQUE INDEX headway_event_one_ready ON headway_event (type, resource_id) WHERE NOT processed AND type IN ('TICKET_READY', 'CAPTURE_READY');

CREATE INDEX headway_event_unprocessed ON headway_event (type, created_at, event_id) WHERE NOT processed;

CREATE TABLE headway_objective (
    objective_id TEXT NOT NULL,
    azolla_id TEXT NOT NULL,
    title TEXT NOT NULL,
    acceptance_criteria TEXT NOT NULL,
    objective_type TEXT NOT NULL,
    status TEXT DEFAULT 'NEW' NOT NULL,
    importance SMALLINT DEFAULT 0 NOT NULL,
    urgency SMALLINT DEFAULT 0 NOT NULL,
    blocked_reason TEXT,
    blocked_on TEXT DEFAULT '[]' NOT NULL,
    metadata TEXT DEFAULT '{}' NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    PRIMARY KEY (objective_id),
    CONSTRAINT headway_objective_objective_type CHECK (objective_type IN ('TICKET', 'STANDING')),
    CONSTRAINT headway_objective_status CHECK (status IN ('NEW', 'TODO', 'IN_PROGRESS', 'BLOCKED', 'DONE')),
    CONSTRAINT headway_objective_importance CHECK (importance BETWEEN 0 AND 4),
    CONSTRAINT headway_objective_urgency CHECK (urgency BETWEEN 0 AND 4)
);

CREATE INDEX headway_objective_of_status ON headway_objective (status, updated_at);

CREATE TABLE headway_pause_state (
    pause_id TEXT NOT NULL,
    objective_id TEXT NOT NULL,
    azolla_id TEXT NOT NULL,
    reason TEXT NOT NULL,
    prioritized_actions TEXT NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    PRIMARY KEY (pause_id),
    CONSTRAINT headway_pause_state_reason CHECK (reason IN ('RUN_COMPLETE', 'GATE_FAILED', 'BUDGET_EXHAUSTED')),
    CONSTRAINT headway_pause_state_actions CHECK (prioritized_actions <> '[]')
);

CREATE INDEX headway_pause_state_of_objective ON headway_pause_state (objective_id, created_at);

CREATE TABLE headway_session_manifest (
    manifest_id TEXT NOT NULL,
    azolla_id TEXT NOT NULL,
    queried_azolla_ids TEXT DEFAULT '[]' NOT NULL,
    pause_state_summary TEXT DEFAULT '[]' NOT NULL,
    prioritized_orientation TEXT NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    PRIMARY KEY (manifest_id),
    CONSTRAINT headway_session_manifest_orientation CHECK (prioritized_orientation <> '[]')
);

CREATE INDEX headway_session_manifest_latest ON headway_session_manifest (azolla_id, created_at);

CREATE TABLE headway_substrate_query (
    query_id TEXT NOT NULL,
    source_azolla_id TEXT NOT NULL,
    target_azolla_id TEXT NOT NULL,
    artifact_type TEXT NOT NULL,
    filter TEXT DEFAULT '{}' NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    PRIMARY KEY (query_id),
    CONSTRAINT headway_substrate_query_artifact_type CHECK (artifact_type IN ('pause_state', 'objective', 'blocker_ref'))
);

CREATE TABLE headway_substrate_query_response (
    response_id TEXT NOT NULL,
    query_id TEXT NOT NULL,
    target_azolla_id TEXT NOT NULL,
    status TEXT NOT NULL,
    results TEXT DEFAULT '[]' NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    PRIMARY KEY (response_id),
    CONSTRAINT headway_substrate_query_response_status CHECK (status IN ('OK', 'DENIED', 'TARGET_UNAVAILABLE')),
    CONSTRAINT headway_substrate_query_response_results CHECK (status = 'OK' OR results = '[]'),
    FOREIGN KEY(query_id) REFERENCES headway_substrate_query (query_id) ON DELETE CASCADE
);

CREATE INDEX headway_substrate_query_response_of_query ON headway_substrate_query_response (query_id);

CREATE TABLE headway_workorder (
    work_order_id TEXT NOT NULL,
    event_id TEXT NOT NULL,
    objective_id TEXT NOT NULL,
    diazotroph_type TEXT NOT NULL,
    context_snapshot_id TEXT NOT NULL,
    branch_name TEXT,
    budget_ms BIGINT NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    status TEXT DEFAULT 'CREATED' NOT NULL,
    PRIMARY KEY (work_order_id),
    CONSTRAINT headway_workorder_diazotroph_type CHECK (diazotroph_type IN ('PATCH_DIAZOTROPH', 'TRIAGE_DIAZOTROPH', 'MANIFEST_BUILDER_DIAZOTROPH')),
    CONSTRAINT headway_workorder_status CHECK (status IN ('CREATED', 'EXECUTED')),
    CONSTRAINT headway_workorder_budget CHECK (budget_ms >= 1),
    UNIQUE (event_id),
    FOREIGN KEY(event_id) REFERENCES headway_event (event_id),
    FOREIGN KEY(context_snapshot_id) REFERENCES headway_context_snapshot (snapshot_id)
);

CREATE INDEX headway_workorder_oldest ON headway_workorder (status, created_at, work_order_id);

CREATE TABLE headway_output_bundle (
    output_id TEXT NOT NULL,
    work_order_id TEXT NOT NULL,
    objective_id TEXT NOT NULL,
    title TEXT NOT NULL,
    metadata TEXT DEFAULT '{}' NOT NULL,
    content TEXT NOT NULL,
    notes TEXT NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    PRIMARY KEY (output_id),
    UNIQUE (work_order_id),
    FOREIGN KEY(work_order_id) REFERENCES headway_workorder (work_order_id)
);

CREATE TABLE headway_run_record (
    run_id TEXT NOT NULL,
    work_order_id TEXT NOT NULL,
    objective_id TEXT NOT NULL,
    output_id TEXT NOT NULL,
    gate_result TEXT NOT NULL,
    gate_reason TEXT NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    PRIMARY KEY (run_id),
    CONSTRAINT headway_run_record_gate_result CHECK (gate_result IN ('PASS', 'FAIL')),
    UNIQUE (work_order_id),
    FOREIGN KEY(work_order_id) REFERENCES headway_workorder (work_order_id),
    FOREIGN KEY(output_id) REFERENCES headway_output_bundle (output_id)
);

-- What a diazotroph was given and what it returned are facts: deleted by retention, never changed.
CREATE FUNCTION headway_refuse_artifact_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a row of % is immutable and cannot be changed', TG_TABLE_NAME;
END
$$;

CREATE TRIGGER headway_context_snapshot_frozen
    BEFORE UPDATE ON headway_context_snapshot
    FOR EACH ROW EXECUTE FUNCTION headway_refuse_artifact_update();

CREATE TRIGGER headway_output_bundle_frozen
    BEFORE UPDATE ON headway_output_bundle
    FOR EACH ROW EXECUTE FUNCTION headway_refuse_artifact_update();
