"""Tables and procedures that were tampered with are refused before anything of them runs."""

import uuid
from collections.abc import Iterator

import psycopg
import pytest

from scrimp.errors import StorageError
from scrimp.storage.open import open_storage
from scrimp.testing.storages import first_event, report_of
from tests.tools.postgres_server import PrivateServer

RUN_BY_OTHERS = (
    "CREATE FUNCTION spy() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN INSERT INTO loot VALUES (1);"
    " RETURN 1; END $$"
)


@pytest.fixture
def url(server: PrivateServer) -> Iterator[str]:
    url = server.url("t" + uuid.uuid4().hex)
    storage = open_storage(url)
    storage.create("digits", [first_event("digits")])
    storage.close()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE loot (x bigint)")
        connection.execute(RUN_BY_OTHERS)
    yield url


def refused(url: str, words: str) -> None:
    storage = open_storage(url)
    with pytest.raises(StorageError, match=words):
        storage.open("digits").read()
    storage.close()
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM loot").fetchone() == (0,)


@pytest.mark.parametrize(
    ("tampering", "words"),
    [
        (
            (
                "ALTER TABLE scrimp_schema RENAME TO hidden; CREATE VIEW scrimp_schema AS SELECT"
                " spy()::integer AS version"
            ),
            "scrimp_schema in .* is not a plain table",
        ),
        (
            (
                "ALTER TABLE scrimp_studies RENAME TO hidden; CREATE VIEW scrimp_studies AS SELECT"
                " id + 0 * spy() AS id, name, length, checksum FROM hidden"
            ),
            "scrimp_studies in .* is not a plain table",
        ),
        (
            "CREATE RULE r AS ON INSERT TO scrimp_leases DO ALSO SELECT spy()",
            "scrimp_leases in .* has rules",
        ),
        (
            (
                "ALTER TABLE scrimp_events ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON"
                " scrimp_events USING (spy() = 1)"
            ),
            "scrimp_events in .* has row policies",
        ),
        (
            (
                "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM spy();"
                " RETURN NEW; END $$; CREATE TRIGGER t BEFORE INSERT ON scrimp_events FOR EACH ROW"
                " EXECUTE FUNCTION f()"
            ),
            "scrimp_events in .* has triggers",
        ),
        ("ALTER TABLE scrimp_events ALTER decision SET DEFAULT spy()", "has column defaults"),
        ("ALTER TABLE scrimp_events ADD CHECK (study > 0)", "has checks"),
        ("CREATE INDEX i ON scrimp_events ((study + 1))", "has other indexes"),
        ("CREATE INDEX i ON scrimp_events (study) WHERE study > 7", "has other indexes"),
        (
            (
                "CREATE OR REPLACE PROCEDURE scrimp_turn(of_study bigint, turn integer, max_wait"
                " text, start bigint, asked uuid, INOUT grown bigint, INOUT first bigint, INOUT news"
                " text, INOUT place bigint, INOUT waiting uuid[]) LANGUAGE plpgsql AS $$ BEGIN"
                " PERFORM spy(); END $$"
            ),
            "the procedure scrimp_turn in .* is not the one that scrimp made",
        ),
        ("ALTER PROCEDURE scrimp_append SECURITY DEFINER", "the procedure scrimp_append"),
        ("DROP PROCEDURE scrimp_turn", "procedures of scrimp are missing or duplicated"),
        (
            (
                "CREATE FUNCTION scrimp_turn(x integer) RETURNS void LANGUAGE sql AS 'SELECT"
                " spy(); SELECT NULL::void'"
            ),
            "the procedure scrimp_turn",
        ),
        (
            (
                "CREATE DOMAIN harmless AS text CHECK (spy() = 1 OR value = '');"
                " ALTER TABLE scrimp_leases ALTER worker TYPE harmless; TRUNCATE loot"
            ),
            "scrimp_leases in .* has other columns",
        ),
        (
            (
                "CREATE DOMAIN harmless AS text CHECK (spy() = 1); ALTER TABLE scrimp_events ADD"
                " extra harmless; TRUNCATE loot"
            ),
            "has other columns",
        ),
        ("CREATE TABLE child () INHERITS (scrimp_studies)", "has child or parent tables"),
        (
            # Triggers after a cascade run with the rights of the user who deletes a study.
            (
                "CREATE TABLE bait (study bigint REFERENCES scrimp_studies ON DELETE CASCADE); "
                "INSERT INTO bait SELECT id FROM scrimp_studies; CREATE FUNCTION f() RETURNS"
                " trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM spy(); RETURN NULL; END $$; CREATE"
                " TRIGGER t AFTER DELETE ON bait FOR EACH ROW EXECUTE FUNCTION f()"
            ),
            "scrimp_studies in .* has other foreign keys",
        ),
    ],
)
def test_tampering_is_refused(url: str, tampering: str, words: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(tampering.encode())
    refused(url, words)


def test_a_superuser_stays_away_from_tables_of_others(server: PrivateServer) -> None:
    schema = "t" + uuid.uuid4().hex
    url = server.url(schema)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            f"DROP ROLE IF EXISTS mallory; CREATE ROLE mallory LOGIN; GRANT ALL ON SCHEMA {schema}"
            " TO mallory".encode()
        )
    hers = open_storage(url.replace("postgres@", "mallory@"))
    hers.create("digits", [first_event("digits")])
    assert hers.open("digits").read() == [first_event("digits")]
    hers.close()
    storage = open_storage(url)
    with pytest.raises(
        StorageError, match="belongs to mallory, so its owner could run code with your rights"
    ):
        storage.names()
    storage.close()
    as_owner = open_storage(url.replace("options=", "options=-crole%3Dmallory%20"))
    assert as_owner.names() == ["digits"]
    as_owner.close()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP OWNED BY mallory; DROP ROLE mallory")


def test_a_procedure_with_arguments_of_a_type_that_runs_code_is_refused(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute("SELECT prosrc FROM pg_proc WHERE proname = 'scrimp_append'")
        ((body,),) = found.fetchall()[-1:]
        connection.execute(
            "CREATE DOMAIN big AS bigint CHECK (spy() = 1); DROP PROCEDURE scrimp_append; CREATE"
            " PROCEDURE scrimp_append(of_study big, number bigint, id uuid, lines text, count"
            " integer, turn integer, start bigint, INOUT grown bigint, INOUT first bigint, INOUT"
            f" news text, INOUT linked bytea, INOUT latest bigint) LANGUAGE plpgsql AS $x${body}$x$".encode()
        )
    refused(url, "the procedure scrimp_append")


BETTER_MATCHES = (
    "quote_ident(name) RETURNS text",
    "convert_to(text, text) RETURNS bytea",
    "substr(bytea, integer, integer) RETURNS bytea",
    "pg_advisory_lock(integer, integer) RETURNS void",
    "octet_length(text) RETURNS integer",
)


@pytest.mark.parametrize("signature", BETTER_MATCHES)
def test_a_function_with_the_name_of_a_built_in_one_never_runs(url: str, signature: str) -> None:
    """Its arguments fit better, and its schema is in the search path."""
    body = "LANGUAGE plpgsql AS $$ BEGIN PERFORM spy(); RETURN NULL; END $$"
    if "void" in signature:
        body = body.replace(" RETURN NULL;", "")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE FUNCTION {signature} {body}".encode())
    storage = open_storage(url)
    store = storage.open("digits")
    store.append([report_of(0)])
    with store.turn(0) as news:
        store.append([report_of(1)], decision=len(news))
    assert len(store.read()) == 3 and storage.names() == ["digits"]
    storage.close()
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM loot").fetchone() == (0,)


def test_an_operator_with_the_name_of_a_built_in_one_never_runs(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            b"CREATE FUNCTION cat(text, name) RETURNS text LANGUAGE plpgsql AS $$ BEGIN PERFORM"
            b" spy(); RETURN $1; END $$; CREATE FUNCTION eq(bigint, smallint) RETURNS boolean"
            b" LANGUAGE plpgsql AS $$ BEGIN PERFORM spy(); RETURN true; END $$; CREATE OPERATOR ||"
            b" (FUNCTION = cat, LEFTARG = text, RIGHTARG = name); CREATE OPERATOR = (FUNCTION = eq,"
            b" LEFTARG = bigint, RIGHTARG = smallint)"
        )
    storage = open_storage(url)
    assert len(storage.open("digits").read()) == 1
    storage.close()
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM loot").fetchone() == (0,)


def test_the_tables_are_found_behind_another_schema(server: PrivateServer, url: str) -> None:
    """As with "$user", public: the first schema of the path may be empty."""
    empty = "t" + uuid.uuid4().hex
    server.url(empty)
    both = url.replace("search_path%3D", f"search_path%3D{empty},")
    storage = open_storage(both)
    assert storage.names() == ["digits"]
    storage.close()
