"""A small but believable ETL on SQLite, shown live: ``headway demo``."""
