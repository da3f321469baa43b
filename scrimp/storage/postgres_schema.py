"""The tables of scrimp in PostgreSQL, and the few procedures that make one round trip of what would
be several.

A row of ``scrimp_events`` is a batch: its events as lines, the position of the first, the number of
its decision if it is one, and a checksum of it and all before it (`chain`).

*Visible, then flushed, then acknowledged.* Batches of a study follow each other, so a commit that
waits for the disk would make every writer wait for every flush. `scrimp_append` therefore commits
the batch without waiting, lets others go on, and ends with a commit that waits: one flush serves
all who wait at that moment. The answer comes after it, so whatever was acknowledged is on disk.
Whoever reads flushes what was found before it counts. Only `scrimp_turn` shows batches that a crash
may still take back; the decision that ends the turn is flushed after them, and if they are gone
after a crash it is not stored (`TurnLost`).

*Nobody runs code of others.* Reading calls none of these procedures. They run with the rights of
their caller and name their tables with the schema; `postgres_trust` compares them with what stands
here before they are used.
"""

from collections.abc import Callable

__all__ = ["FLUSH", "LOCKS", "STEPS", "page_query", "routines"]

# "scrm": the kind of advisory locks that are ours; number 0 is for upgrades, the others for studies
LOCKS = 0x7363726D

PAGE_ROWS = 5000
PAGE_BYTES = 32 * 2**20
"""How much of a log one answer holds at most; a single batch may be larger."""

FLUSH = (
    "CASE WHEN current_setting('transaction_read_only') = 'off' THEN pg_logical_emit_message(true,"
    " 'scrimp', '') END"
)
"""The commit of a transaction that wrote something waits for the disk, and for all that was written
before it."""


def page_query(study: str, start: str, schema: str = "") -> str:
    """A query for the lines of a study from position ``start`` on, and the place of the first; cut
    short where there are many."""
    return f"""
        SELECT min(position) AS place, string_agg(event, E'\\n' ORDER BY position) AS lines FROM (
            SELECT position, event, sum(octet_length(event)) OVER (ORDER BY position) AS bytes,
                row_number() OVER (ORDER BY position) AS row FROM (
                SELECT position, event FROM {schema}scrimp_events WHERE study = {study} AND position >= {start}
                ORDER BY position LIMIT {PAGE_ROWS}
            ) AS rows
        ) AS page WHERE bytes <= {PAGE_BYTES} OR row = 1
    """


def routines(schema: str) -> dict[str, str]:
    """The bodies of the procedures, by name, for tables in ``schema`` (quoted, with its dot)."""
    return {
        "scrimp_flush": (
            """
    BEGIN
        IF current_setting('transaction_read_only') = 'off' THEN
            PERFORM pg_logical_emit_message(true, 'scrimp', '');
        END IF;
    END """
        ),
        "scrimp_turn": (
            f"""
    BEGIN
        PERFORM set_config('lock_timeout', patience, true), pg_advisory_lock({LOCKS}, turn);
        SELECT length, found.place, found.lines INTO grown, first, news FROM {schema}scrimp_studies, LATERAL (
            {page_query("of_study", "start", schema)}
        ) AS found WHERE id = of_study;
    END """
        ),
        "scrimp_append": (
            f"""
    BEGIN
        PERFORM set_config('synchronous_commit', 'off', true);
        UPDATE {schema}scrimp_studies AS s SET length = length + count,
            checksum = substr(sha256(coalesce(checksum, ''::bytea) || convert_to(lines, 'UTF8')), 1, 16)
        WHERE s.id = of_study RETURNING s.length, s.checksum INTO grown, linked;
        IF grown IS NULL THEN
            RETURN;
        END IF;
        INSERT INTO {schema}scrimp_events (study, position, decision, batch, event, checksum)
        VALUES (of_study, grown - count, number, id, lines, linked);
        COMMIT;
        IF turn IS NOT NULL THEN
            PERFORM pg_advisory_unlock({LOCKS}, turn);
        END IF;
        IF start IS NOT NULL THEN
            SELECT place, found.lines INTO first, news FROM ({page_query("of_study", "start", schema)}) AS found;
        END IF;
        PERFORM pg_logical_emit_message(true, 'scrimp', '');
    END """
        ),
    }


def _checksums(schema: str) -> str:
    bodies = routines(schema)
    return f"""
    ALTER TABLE scrimp_studies ADD COLUMN checksum bytea;
    ALTER TABLE scrimp_events ADD COLUMN checksum bytea;
    DROP FUNCTION scrimp_turn; DROP PROCEDURE scrimp_append;

    -- Waits for a turn, and reads from start on: the length of the study, where the first batch is, and the lines.
    CREATE FUNCTION scrimp_turn(
        of_study bigint, turn integer, patience text, start bigint, OUT grown bigint, OUT first bigint, OUT news text
    ) LANGUAGE plpgsql AS $${bodies["scrimp_turn"]}$$;

    -- Stores a batch, ends the turn if there is one, and reads from start on if there is a start.
    CREATE PROCEDURE scrimp_append(
        of_study bigint, number bigint, id uuid, lines text, count integer, turn integer, start bigint,
        INOUT grown bigint, INOUT first bigint, INOUT news text, INOUT linked bytea
    ) LANGUAGE plpgsql AS $${bodies["scrimp_append"]}$$;
    """


STEPS: tuple[str | Callable[[str], str], ...] = (
    """
    CREATE TABLE scrimp_studies (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        name text NOT NULL CONSTRAINT scrimp_names UNIQUE,
        length bigint NOT NULL
    );
    -- No foreign key: it would be checked for every event. A study is deleted first, and its events after it.
    CREATE TABLE scrimp_events (
        study bigint NOT NULL,
        position bigint NOT NULL,
        decision bigint,
        batch uuid,
        event text NOT NULL,
        PRIMARY KEY (study, position)
    );
    CREATE UNIQUE INDEX scrimp_decisions ON scrimp_events (study, decision) WHERE decision IS NOT NULL;
    CREATE UNIQUE INDEX scrimp_batches ON scrimp_events (study, batch) WHERE batch IS NOT NULL;
    CREATE TABLE scrimp_leases (
        study bigint NOT NULL REFERENCES scrimp_studies ON DELETE CASCADE,
        trial bigint NOT NULL,
        attempt bigint NOT NULL,
        worker text NOT NULL,
        host text NOT NULL,
        pid bigint NOT NULL,
        started bigint NOT NULL,
        expires timestamptz NOT NULL,
        PRIMARY KEY (study, trial)
    );
    """,
    "CREATE TABLE scrimp_kept (key text PRIMARY KEY, value text NOT NULL);",
    # From here on a row may hold the lines of several events; rows of before hold one, and are read
    # the same way.
    f"""
    -- The commit of a transaction that wrote something waits for the disk, and for all that was written before it.
    CREATE FUNCTION scrimp_flush() RETURNS void LANGUAGE plpgsql AS $$
    BEGIN
        IF current_setting('transaction_read_only') = 'off' THEN
            PERFORM pg_logical_emit_message(true, 'scrimp', '');
        END IF;
    END $$;

    -- Waits for a turn, and reads from start on: the length of the study, where the first batch is, and the lines, cut short
    -- where there are many.
    CREATE FUNCTION scrimp_turn(
        of_study bigint, turn integer, patience text, start bigint, OUT grown bigint, OUT first bigint, OUT news text
    ) LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM set_config('lock_timeout', patience, true), pg_advisory_lock({LOCKS}, turn);
        SELECT length, found.place, found.lines INTO grown, first, news FROM scrimp_studies, LATERAL (
            SELECT min(position) AS place, string_agg(event, E'\\n') AS lines FROM (
                SELECT position, event FROM scrimp_events WHERE study = of_study AND position >= start
                ORDER BY position LIMIT 5000
            ) AS page
        ) AS found WHERE id = of_study;
    END $$;

    -- Stores a batch, ends the turn if there is one, and reads from start on if there is a start.
    CREATE PROCEDURE scrimp_append(
        of_study bigint, number bigint, id uuid, lines text, count integer, turn integer, start bigint,
        INOUT grown bigint, INOUT first bigint, INOUT news text
    ) LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM set_config('synchronous_commit', 'off', true);
        UPDATE scrimp_studies SET length = length + count WHERE scrimp_studies.id = of_study RETURNING length INTO grown;
        IF grown IS NULL THEN
            RETURN;
        END IF;
        INSERT INTO scrimp_events (study, position, decision, batch, event)
        VALUES (of_study, grown - count, number, id, lines);
        COMMIT;
        IF turn IS NOT NULL THEN
            PERFORM pg_advisory_unlock({LOCKS}, turn);
        END IF;
        IF start IS NOT NULL THEN
            SELECT min(position), string_agg(event, E'\\n') INTO first, news FROM (
                SELECT position, event FROM scrimp_events WHERE study = of_study AND position >= start
                ORDER BY position LIMIT 5000
            ) AS page;
        END IF;
        PERFORM pg_logical_emit_message(true, 'scrimp', '');
    END $$;
    """,
    _checksums,
    "ALTER TABLE scrimp_leases ADD COLUMN seconds double precision;",
)
"""The schema: step k turns version k into version k + 1; some need the name of the schema, quoted
and with its dot.

Steps that were released are never edited, only followed.
"""
