"""Tables and procedures that were tampered with are refused before anything of them runs."""

import uuid
from collections.abc import Iterator

import psycopg
import pytest

from scrimp.errors import StorageError
from scrimp.storage.open import open_storage
from scrimp.testing.postgres_server import PrivateServer
from scrimp.testing.storages import first_event

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
                "CREATE OR REPLACE FUNCTION scrimp_flush() RETURNS void LANGUAGE plpgsql AS $$"
                " BEGIN PERFORM spy(); END $$"
            ),
            "the procedure scrimp_flush in .* is not the one that scrimp made",
        ),
        ("ALTER PROCEDURE scrimp_append SECURITY DEFINER", "the procedure scrimp_append"),
        ("DROP FUNCTION scrimp_turn", "procedures of scrimp are missing or doubled"),
        (
            (
                "CREATE FUNCTION scrimp_flush(x integer) RETURNS void LANGUAGE sql AS 'SELECT"
                " spy(); SELECT NULL::void'"
            ),
            "the procedure scrimp_flush",
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
