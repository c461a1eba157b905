-- Who may act: a token's text is shown once, and only its hash is kept.
CREATE TABLE headway_token (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    prefix TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    scope TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    expires_at BIGINT,
    last_used_at BIGINT,
    revoked_at BIGINT,
    CONSTRAINT headway_token_scope CHECK (scope IN ('read', 'operate', 'admin'))
);

CREATE UNIQUE INDEX headway_token_of_prefix ON headway_token (prefix);

-- The audit names people by it: one person, one name.
CREATE UNIQUE INDEX headway_token_of_name ON headway_token (name) WHERE revoked_at IS NULL;

-- What was answered to a request with a key, for whoever sends it again.
CREATE TABLE headway_idempotency (
    actor TEXT NOT NULL,
    key TEXT NOT NULL,
    digest TEXT NOT NULL,
    status INTEGER,
    headers TEXT DEFAULT '{}' NOT NULL,
    body TEXT,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (actor, key)
);

CREATE INDEX headway_idempotency_oldest ON headway_idempotency (created_at);

-- The audit is written once; only its oldest rows are deleted.
CREATE TRIGGER headway_audit_frozen
BEFORE UPDATE ON headway_audit
BEGIN
    SELECT RAISE(ABORT, 'a row of the audit is immutable and cannot be changed');
END;
