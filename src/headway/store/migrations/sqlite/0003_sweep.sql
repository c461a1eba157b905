CREATE TABLE headway_mark (
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (name)
);

-- How far a wake-up of many manifests has come: the last of them that was woken.
ALTER TABLE headway_wake ADD COLUMN position INTEGER DEFAULT 0 NOT NULL;
