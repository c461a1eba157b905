-- Sessions that somebody ended before their time: no web process takes them any more.
CREATE TABLE headway_logout (
    session_id TEXT NOT NULL,
    until TIMESTAMP WITH TIME ZONE NOT NULL,
    PRIMARY KEY (session_id)
);

CREATE INDEX headway_logout_oldest ON headway_logout (until);

-- How often an address was wrong in a minute, whichever web process it asked.
CREATE TABLE headway_wrong_try (
    minute TIMESTAMP WITH TIME ZONE NOT NULL,
    address TEXT NOT NULL,
    tries INTEGER NOT NULL,
    PRIMARY KEY (minute, address)
);
