"""The tables of scrimp in PostgreSQL, and the few procedures that make one round trip of what would be several.

A row of ``scrimp_events`` is a batch: its events as lines, the position of the first, the number of its decision if it is one.

*Visible, then flushed, then acknowledged.* Batches of a study follow each other, so a commit that waits for the disk would make
every writer wait for every flush. `scrimp_append` therefore commits the batch without waiting, lets others go on, and ends with
a commit that waits: one flush serves all who wait at that moment. The answer comes after it, so whatever was acknowledged is
on disk. Whoever reads flushes what was found before it counts. Only `scrimp_turn` shows batches that a crash may still take
back; the decision that ends the turn is flushed after them, and if they are gone after a crash it is not stored (`TurnLost`).
"""

__all__ = ["LOCKS", "STEPS"]

LOCKS = 0x7363726D  # "scrm": the kind of advisory locks that are ours; number 0 is for upgrades, the others for studies

STEPS = (
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
    # From here on a row may hold the lines of several events; rows of before hold one, and are read the same way.
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
)
"""The schema: step k turns version k into version k + 1. Steps that were released are never edited, only followed."""
