-- The steps of each run with their durations; of a run that goes on, those that have ended.
ALTER TABLE headway_execution ADD COLUMN steps TEXT;

ALTER TABLE headway_execution_history ADD COLUMN steps TEXT;

-- What the pages read.
CREATE INDEX headway_execution_history_of_group ON headway_execution_history (group_id, id);

CREATE INDEX headway_execution_history_not_completed ON headway_execution_history (state, id) WHERE state <> 'completed';

CREATE INDEX headway_dead_letter_newest ON headway_dead_letter (id) WHERE status = 'awaiting_intervention';

CREATE INDEX headway_audit_of_subject ON headway_audit (subject, id);

CREATE INDEX headway_manifest_group_disabled ON headway_manifest_group (id) WHERE NOT enabled;

-- What has ended, counted: of all together by the minute, and of each group by the hour.
CREATE TABLE headway_tally (
    span TEXT NOT NULL,
    group_id INTEGER NOT NULL,
    starts_at BIGINT NOT NULL,
    completed BIGINT DEFAULT 0 NOT NULL,
    failed BIGINT DEFAULT 0 NOT NULL,
    cancelled BIGINT DEFAULT 0 NOT NULL,
    run_seconds FLOAT DEFAULT 0 NOT NULL,
    PRIMARY KEY (span, group_id, starts_at),
    CONSTRAINT headway_tally_span CHECK (span IN ('minute', 'hour', 'until'))
);

CREATE UNIQUE INDEX headway_tally_one_until ON headway_tally (span) WHERE span = 'until';
