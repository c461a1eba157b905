-- SQLite uses the room of deleted rows at once: there is nothing to set.
SELECT 1;
