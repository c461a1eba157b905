-- What the artifacts have no field for: how often an event was tried, why it rests, which queue
-- entry executes a workorder.
ALTER TABLE headway_event ADD COLUMN attempts INTEGER DEFAULT 0 NOT NULL;

ALTER TABLE headway_event ADD COLUMN parked_at BIGINT;

ALTER TABLE headway_event ADD COLUMN last_error TEXT;

ALTER TABLE headway_workorder ADD COLUMN entry_id BIGINT;

-- A deployment has one standing objective, and builds one manifest at a time.
CREATE UNIQUE INDEX headway_objective_one_standing ON headway_objective (objective_type) WHERE objective_type = 'STANDING';

CREATE UNIQUE INDEX headway_workorder_one_manifest ON headway_workorder (diazotroph_type) WHERE status = 'CREATED' AND diazotroph_type = 'MANIFEST_BUILDER_DIAZOTROPH';

CREATE INDEX headway_pause_state_newest ON headway_pause_state (created_at, pause_id);

-- Requests of peers that were answered: whoever sends one again is refused, by every server.
CREATE TABLE headway_nonce (
    source_azolla_id TEXT NOT NULL,
    nonce TEXT NOT NULL,
    seen_at BIGINT NOT NULL,
    PRIMARY KEY (source_azolla_id, nonce)
);

CREATE INDEX headway_nonce_oldest ON headway_nonce (seen_at);

-- Facts: deleted by retention, never changed.
CREATE TRIGGER headway_pause_state_frozen
BEFORE UPDATE ON headway_pause_state
BEGIN
    SELECT RAISE(ABORT, 'a pause state is immutable and cannot be changed');
END;

CREATE TRIGGER headway_session_manifest_frozen
BEFORE UPDATE ON headway_session_manifest
BEGIN
    SELECT RAISE(ABORT, 'a session manifest is immutable and cannot be changed');
END;

CREATE TRIGGER headway_run_record_frozen
BEFORE UPDATE ON headway_run_record
BEGIN
    SELECT RAISE(ABORT, 'a run record is immutable and cannot be changed');
END;

CREATE TRIGGER headway_substrate_query_frozen
BEFORE UPDATE ON headway_substrate_query
BEGIN
    SELECT RAISE(ABORT, 'a substrate query is immutable and cannot be changed');
END;

CREATE TRIGGER headway_substrate_query_response_frozen
BEFORE UPDATE ON headway_substrate_query_response
BEGIN
    SELECT RAISE(ABORT, 'a substrate query response is immutable and cannot be changed');
END;

CREATE TRIGGER headway_event_ended
BEFORE UPDATE ON headway_event
WHEN OLD.processed
BEGIN
    SELECT RAISE(ABORT, 'the event is over and cannot be changed');
END;

CREATE TRIGGER headway_workorder_ended
BEFORE UPDATE ON headway_workorder
WHEN OLD.status = 'EXECUTED'
BEGIN
    SELECT RAISE(ABORT, 'the workorder is over and cannot be changed');
END;
