-- Since when a server has renewed its lease without a gap; null: not yet.
ALTER TABLE headway_server ADD COLUMN unbroken_since TIMESTAMP WITH TIME ZONE;
