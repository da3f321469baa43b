"""The tables of scrimp in PostgreSQL, the procedures that save round trips, and the check that both
are unchanged.

A row of ``scrimp_events`` is a batch: its events as lines, the position of the first, the number of
its decision if it has one, and a checksum of it and all before it (see `event_json`).

*Visible, then flushed, then acknowledged.* The batches of a study follow each other, so a commit
that waits for the disk would make every writer wait for every flush. Therefore `scrimp_append`
commits the batch without waiting, lets other writers continue, and ends with a commit that waits:
one flush serves all writers that wait at that moment. The answer comes after it, so an acknowledged
batch is on disk. A reader waits until what it read is on disk before relying on it. Only
`scrimp_turn` shows batches that a crash may still take back; the decision that ends the turn
is flushed after them, and is not stored if a crash took them back (`TurnLost`).

*Decisions for those who wait.* A process that waits for its turn to decide says so in
``scrimp_asked``, under the id of the batch that it wants. The process that has its turn appends
such batches, too, one decision after the other, and flushes them together when its turn ends: it
has just read what is new, while each of the others would have to be woken to read and decide. Who
finds its batch in the log passes its turn on, and reads that batch alone.

*Few read.* Each process that decides reads what all others did, so the fewer decide, the less is
read. A process that has much to read first leaves its decision to one that has less: it waits for a
few turns of others, and some milliseconds between them. Then it reads, without a turn, and waits for
its turn; until it has decided, others may still answer it. A report reads nothing, either, if it is on a trial that
`ask` gave to this process and nothing happened since that concerns more than one process:
``changed`` is the end of the last batch of that kind. All batches count, except decisions that give a
new trial to a process without a lease, and such reports.

*No foreign code runs.* The owner of a table can attach code to it (a view, rule, trigger, policy,
default, constraint, foreign key, child table, type of a column or index function) that runs with the rights of
its users; so can the owner of a procedure. Each connection therefore checks the catalogue first:
the tables must be plain tables with the columns below and without any of these, and the procedures
must match the ones in this file, types and text. A superuser, whose rights are worth most, works
only with tables of a superuser. Anyone who may create functions or operators in a schema of the
search path could give one the name of a built-in one and arguments that fit better. So each
connection searches ``pg_catalog`` alone, and every query names its tables and procedures with the
schema: SQL in this package says ``{schema}scrimp_events``. The procedures run with the rights and
the search path of their caller; reading calls none of them.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import psycopg

from scrimp.errors import StorageError

Row = tuple[Any, ...]

LOCK_CLASS = 0x7363726D
"""The class of scrimp's advisory locks ("scrm"); number 0 is for upgrades, the others for studies."""

MAX_PAGE_ROWS = 5000
MAX_PAGE_BYTES = 32 * 2**20
"""The largest part of a log in one answer; a single batch may be larger."""

MAX_PLAIN_EVENTS = 500
"""The most new events that a procedure reads without a bound on their size."""

MAX_ANSWERS = 32
"""The most decisions that a process takes for others in its turn."""

MANY_EVENTS = 200
"""New events from which on a process leaves its decision to others for a moment, rather than read
them: about 50 trials. With 100 and 400, 32 workers were no faster."""

PAUSE_SECONDS = 0.004
MAX_PAUSES = 16
"""The pauses of that moment, each after waiting for the end of a turn."""

MAX_MOMENT_SECONDS = 0.5
"""The time after which no further pause begins: turns in which a model is fitted take long."""

FLUSH = (
    "CASE WHEN current_setting('transaction_read_only') = 'off' THEN pg_logical_emit_message(true,"
    " 'scrimp', '') END"
)
"""An expression that makes the commit wait until this transaction and all before it are on disk."""


class Connection(psycopg.Connection[Row]):
    """A connection that searches ``pg_catalog`` alone; ``schema`` is that of the tables, quoted and
    with its dot."""

    schema = ""
    _cursor: psycopg.Cursor[Row] | None = None

    def ask(
        self, query: str, parameters: Sequence[object] | Mapping[str, object] = ()
    ) -> list[Row]:
        """Return the rows of a query, in which ``{schema}`` stands for the schema."""
        # Kept, because making a cursor takes as long as a small query.
        if self._cursor is None:
            self._cursor = self.cursor()
        cursor = self._cursor.execute(_placed(query, self.schema), parameters)
        return [] if cursor.rownumber is None else cursor.fetchall()


@cache
def _placed(query: str, schema: str) -> bytes:
    return query.replace("{schema}", schema).encode()


def page_query(study: str, start: str, schema: str = "{schema}", share: int = 1) -> str:
    """Return a query for the lines of a study from position ``start`` on and the position of the
    first, at most one page, or one of ``share`` parts of a page."""
    return f"""
        SELECT min(position) AS place, string_agg(event, E'\\n' ORDER BY position) AS lines FROM (
            SELECT position, event, sum(octet_length(event)) OVER (ORDER BY position) AS bytes,
                row_number() OVER (ORDER BY position) AS row FROM (
                SELECT position, event FROM {schema}scrimp_events WHERE study = {study} AND position >= {start}
                ORDER BY position LIMIT {MAX_PAGE_ROWS // share}
            ) AS rows
        ) AS page WHERE bytes <= {MAX_PAGE_BYTES // share} OR row = 1
    """


def news_block(schema: str) -> str:
    """Return statements that read from ``start`` on, if there is a start: few events in a plain way,
    since each process reads those of all others."""
    return f"""
        IF grown - start <= {MAX_PLAIN_EVENTS} THEN
            SELECT min(position), string_agg(event, E'\\n') INTO first, news FROM (
                SELECT position, event FROM {schema}scrimp_events WHERE study = of_study AND position >= start
                ORDER BY position
            ) AS rows;
        ELSIF start IS NOT NULL THEN
            SELECT found.place, found.lines INTO first, news FROM ({page_query("of_study", "start", schema)}) AS found;
        END IF;
    """


def _turn(schema: str) -> str:
    return f"""
    BEGIN
        SELECT length INTO grown FROM {schema}scrimp_studies WHERE id = of_study;
        behind := coalesce(patient AND grown - start > {MANY_EVENTS}, false);
        IF asked IS NULL OR behind OR NOT pg_try_advisory_lock({LOCK_CLASS}, turn) THEN
            IF asked IS NOT NULL THEN
                INSERT INTO {schema}scrimp_asked VALUES (of_study, asked) ON CONFLICT DO NOTHING;
                COMMIT;
            END IF;
            PERFORM set_config('lock_timeout', max_wait, true);
            IF behind THEN
                FOR pause IN 1 .. {MAX_PAUSES} LOOP
                    PERFORM pg_advisory_lock_shared({LOCK_CLASS}, turn);
                    PERFORM pg_advisory_unlock_shared({LOCK_CLASS}, turn);
                    SELECT position INTO place FROM {schema}scrimp_events WHERE study = of_study AND batch = asked;
                    EXIT WHEN place IS NOT NULL OR clock_timestamp() >
                        statement_timestamp() + make_interval(secs => {MAX_MOMENT_SECONDS});
                    PERFORM pg_sleep({PAUSE_SECONDS});
                END LOOP;
            ELSE
                PERFORM pg_advisory_lock({LOCK_CLASS}, turn);
            END IF;
        END IF;
        IF NOT behind THEN
            DELETE FROM {schema}scrimp_asked WHERE study = of_study AND batch = asked;
        END IF;
        SELECT position, event INTO place, news FROM {schema}scrimp_events WHERE study = of_study AND batch = asked;
        SELECT length INTO grown FROM {schema}scrimp_studies WHERE id = of_study;
        IF place IS NULL THEN
            {news_block(schema)}
        END IF;
        IF place IS NULL AND NOT behind THEN
            SELECT array_agg(batch) INTO waiting FROM (
                SELECT batch FROM {schema}scrimp_asked WHERE study = of_study AND asked IS NOT NULL LIMIT {MAX_ANSWERS}
            ) AS others;
        ELSE
            PERFORM pg_logical_emit_message(true, 'scrimp', '');
            IF NOT behind THEN
                PERFORM pg_advisory_unlock({LOCK_CLASS}, turn);
            END IF;
        END IF;
    END """


def _append(schema: str) -> str:
    return f"""
    BEGIN
        PERFORM set_config('synchronous_commit', 'off', true);
        IF answer THEN
            DELETE FROM {schema}scrimp_asked WHERE study = of_study AND batch = id;
            IF NOT FOUND THEN
                grown := 0;
                RETURN;
            END IF;
        END IF;
        UPDATE {schema}scrimp_studies AS s SET length = length + count,
            checksum = substr(sha256(checksum || convert_to(lines, 'UTF8')), 1, 16),
            changed = CASE WHEN own THEN changed ELSE length + count END
        WHERE s.id = of_study RETURNING s.length, s.checksum, s.changed INTO grown, linked, latest;
        IF grown IS NULL THEN
            RETURN;
        END IF;
        INSERT INTO {schema}scrimp_events (study, position, decision, batch, event, checksum)
        VALUES (of_study, grown - count, number, id, lines, linked);
        COMMIT;
        IF turn IS NOT NULL THEN
            PERFORM pg_advisory_unlock({LOCK_CLASS}, turn);
        END IF;
        IF NOT own OR number IS NOT NULL OR latest > start THEN
            {news_block(schema)}
        END IF;
        IF NOT more THEN
            PERFORM pg_logical_emit_message(true, 'scrimp', '');
        END IF;
    END """


def _routines(schema: str) -> str:
    return f"""
    -- Waits for a turn, and reads from start on: the length of the study, where the first batch is, and the lines.
    -- If the asked batch was appended meanwhile, which ends the turn, where it is and its lines alone; if not, the
    -- batches of others. A patient process that is far behind gets no turn: it reads and calls again.
    CREATE PROCEDURE {schema}scrimp_turn(
        of_study bigint, turn integer, max_wait text, start bigint, asked uuid, patient boolean,
        INOUT grown bigint, INOUT first bigint, INOUT news text, INOUT place bigint, INOUT waiting uuid[],
        INOUT behind boolean
    ) LANGUAGE plpgsql AS $${_turn(schema)}$$;

    -- Stores a batch, ends the turn if there is one, and reads from start on if there is a start. As an answer only
    -- if it is still waited for (else the length is 0); if more batches follow, does not wait for the disk. A report
    -- that concerns its own process alone reads nothing if all batches from start on are of that kind.
    CREATE PROCEDURE {schema}scrimp_append(
        of_study bigint, number bigint, id uuid, lines text, count integer, turn integer, start bigint,
        answer boolean, more boolean, own boolean,
        INOUT grown bigint, INOUT first bigint, INOUT news text, INOUT linked bytea, INOUT latest bigint
    ) LANGUAGE plpgsql AS $${_append(schema)}$$;
    """


def _tables_and_routines(schema: str) -> str:
    return f"""
    CREATE TABLE {schema}scrimp_studies (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        name text NOT NULL CONSTRAINT scrimp_names UNIQUE,
        length bigint NOT NULL,
        checksum bytea NOT NULL,
        changed bigint NOT NULL -- the end of the last batch that concerns more than one process
    );
    -- No foreign key: it would be checked for every event. A study is deleted first, and its events after it.
    CREATE TABLE {schema}scrimp_events (
        study bigint NOT NULL,
        position bigint NOT NULL,
        decision bigint,
        batch uuid NOT NULL,
        event text NOT NULL,
        checksum bytea NOT NULL,
        PRIMARY KEY (study, position)
    );
    CREATE UNIQUE INDEX scrimp_decisions ON {schema}scrimp_events (study, decision) WHERE decision IS NOT NULL;
    CREATE UNIQUE INDEX scrimp_batches ON {schema}scrimp_events (study, batch);
    CREATE TABLE {schema}scrimp_leases (
        study bigint NOT NULL REFERENCES {schema}scrimp_studies ON DELETE CASCADE,
        trial bigint NOT NULL,
        attempt bigint NOT NULL,
        worker text NOT NULL,
        host text NOT NULL,
        pid bigint NOT NULL,
        started bigint NOT NULL,
        expires timestamptz NOT NULL,
        seconds double precision NOT NULL,
        PRIMARY KEY (study, trial)
    );
    CREATE TABLE {schema}scrimp_kept (key text PRIMARY KEY, value text NOT NULL);
    -- The batches for which processes wait while another has its turn, which may append them.
    CREATE UNLOGGED TABLE {schema}scrimp_asked (study bigint NOT NULL, batch uuid NOT NULL, PRIMARY KEY (study, batch));
    {_routines(schema)}
    """


SCHEMA_STEPS: tuple[Callable[[str], str], ...] = (_tables_and_routines,)
"""The steps of the schema: step k turns version k into version k + 1. Each is a function of the
name of the schema, quoted and with its dot.

Released steps are never edited; a change adds a step.
"""


COLUMNS = {
    "scrimp_schema": "version integer",
    "scrimp_studies": "id bigint, name text, length bigint, checksum bytea, changed bigint",
    "scrimp_events": (
        "study bigint, position bigint, decision bigint, batch uuid, event text, checksum bytea"
    ),
    "scrimp_leases": (
        "study bigint, trial bigint, attempt bigint, worker text, host text, pid bigint,"
        " started bigint, expires timestamp with time zone, seconds double precision"
    ),
    "scrimp_kept": "key text, value text",
    "scrimp_asked": "study bigint, batch uuid",
}
"""The columns of the tables."""

ARGUMENTS = {
    "scrimp_turn": (
        "of_study bigint, turn integer, max_wait text, start bigint, asked uuid, patient boolean,"
        " grown bigint, first bigint, news text, place bigint, waiting uuid[], behind boolean"
    ),
    "scrimp_append": (
        "of_study bigint, number bigint, id uuid, lines text, count integer, turn integer,"
        " start bigint, answer boolean, more boolean, own boolean, grown bigint, first bigint,"
        " news text, linked bytea, latest bigint"
    ),
}
"""The arguments of the procedures, those for results included."""

FOREIGN_TABLES = """
SELECT relname, CASE
    WHEN relkind <> 'r' THEN 'is not a plain table'
    WHEN relhasrules THEN 'has rules'
    WHEN relrowsecurity THEN 'has row policies'
    WHEN EXISTS (SELECT FROM pg_trigger WHERE tgrelid = c.oid AND NOT tgisinternal) THEN 'has triggers'
    WHEN EXISTS (SELECT FROM pg_attrdef WHERE adrelid = c.oid) THEN 'has column defaults'
    WHEN EXISTS (SELECT FROM pg_constraint WHERE conrelid = c.oid AND contype = 'c') THEN 'has checks'
    WHEN EXISTS (SELECT FROM pg_constraint WHERE contype = 'f' AND c.oid IN (conrelid, confrelid)
        AND (conrelid, confrelid) <> (to_regclass(%(schema)s || 'scrimp_leases'), to_regclass(%(schema)s || 'scrimp_studies'))
        ) THEN 'has other foreign keys'
    WHEN EXISTS (SELECT FROM pg_inherits WHERE c.oid IN (inhparent, inhrelid)) THEN 'has child or parent tables'
    WHEN EXISTS (SELECT FROM pg_index WHERE indrelid = c.oid AND (indexprs IS NOT NULL
        OR pg_get_expr(indpred, indrelid) !~ '^\\(decision IS NOT NULL\\)$')) THEN 'has other indexes'
    WHEN current_setting('is_superuser') = 'on' AND NOT rolsuper THEN 'belongs to ' || quote_ident(rolname)
END, array_to_string(ARRAY(
    SELECT attname || ' ' || format_type(atttypid, NULL) FROM pg_attribute
    WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped ORDER BY attnum
), ', ')
FROM pg_class AS c JOIN pg_roles AS owner ON owner.oid = relowner
WHERE c.oid = ANY (SELECT to_regclass(%(schema)s || name) FROM unnest(%(names)s::text[]) AS name)
"""

ROUTINES = """
SELECT proname, prosrc, prosecdef OR proconfig IS NOT NULL OR pronargdefaults > 0, lanname, array_to_string(ARRAY(
    SELECT proargnames[place] || ' ' || format_type(type, NULL)
    FROM unnest(coalesce(proallargtypes, proargtypes::oid[])) WITH ORDINALITY AS a (type, place) ORDER BY place
), ', ')
FROM pg_proc JOIN pg_language AS l ON l.oid = prolang
WHERE proname = ANY (%s) AND pronamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass(%s))
"""


def check_tables(connection: Connection, shown: str, names: Sequence[str] = tuple(COLUMNS)) -> None:
    """Raise `StorageError` when a table of scrimp was changed, or has an owner who is a risk."""
    given = {"schema": connection.schema, "names": list(names)}
    # A table that was replaced comes first: keys of others follow the one it replaced.
    found = sorted(
        connection.ask(FOREIGN_TABLES, given), key=lambda row: row[1] != "is not a plain table"
    )
    for table, trouble, columns in found:
        if trouble is None and columns != COLUMNS[table]:
            trouble = "has other columns"
        if trouble is not None:
            raise StorageError(
                f"{table} in {shown} {trouble}, so its owner could run code with your rights;"
                " connect as that owner or as a role with few rights, or let a superuser make the"
                " tables"
                if trouble.startswith("belongs")
                else f"{table} in {shown} {trouble}, which scrimp did not make: it could run code"
                " with your rights. Ask its owner, and use another schema or database meanwhile"
            )


def check_routines(connection: Connection, shown: str) -> None:
    """Raise `StorageError` when a procedure of scrimp is not the one that this version creates."""
    ours = {"scrimp_turn": _turn(connection.schema), "scrimp_append": _append(connection.schema)}
    table = f"{connection.schema}scrimp_schema"
    found = connection.ask(ROUTINES, (list(ours), table))
    for name, source, powers, language, arguments in found:
        if (source, arguments) != (ours[name], ARGUMENTS[name]) or powers or language != "plpgsql":
            raise StorageError(
                f"the procedure {name} in {shown} is not the one that scrimp made, and could run"
                " code with your rights. Ask the owner of the tables, and use another schema or"
                " database meanwhile"
            )
    if sorted(row[0] for row in found) != sorted(ours):
        raise StorageError(
            f"procedures of scrimp are missing or duplicated in {shown}; restore a backup of the"
            " database"
        )
