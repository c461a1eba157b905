-- What is to be told to another task server: written with the execution, read by the relay.
CREATE TABLE headway_outbox (
    execution_id INTEGER NOT NULL,
    task_server TEXT NOT NULL,
    publish_at BIGINT NOT NULL,
    published INTEGER DEFAULT 0 NOT NULL,
    PRIMARY KEY (execution_id)
);

CREATE INDEX headway_outbox_due ON headway_outbox (publish_at);
