"""Storage of study logs: memory, SQLite, PostgreSQL, or a shared folder."""
