-- Rows of these tables live for a moment. A fifth of the table, the server's default, is the wrong
-- measure for them: an empty queue through which a million entries went would never be due.
ALTER TABLE headway_work_queue SET (
    autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0
);

ALTER TABLE headway_execution SET (
    autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0
);

ALTER TABLE headway_wake SET (
    autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0
);

-- A row is written anew with every run; the next version finds room beside it, on the same page.
ALTER TABLE headway_manifest_state SET (
    fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05
);
