"""Tables of somebody else's database."""

import pytest

psycopg = pytest.importorskip("psycopg")

from scrimp.errors import StudyError, Unreachable  # noqa: E402
from scrimp.storage.postgres_rows import read_tables  # noqa: E402
from scrimp.testing.postgres_server import PrivateServer  # noqa: E402


def test_named_columns_of_named_tables(server: PrivateServer) -> None:
    url = server.url("others")
    with psycopg.connect(url) as connection:
        connection.execute('CREATE TABLE studies (study_id int, "name" text, more int)')
        connection.execute("INSERT INTO studies VALUES (1, 'a', 7), (2, NULL, 8)")
    wanted = {"studies": ("study_id", "name"), "trials": ("trial_id",)}
    assert read_tables(url, wanted) == {"studies": [(1, "a"), (2, None)], "trials": []}
    assert read_tables(url.replace("postgresql:", "postgresql+psycopg2:"), wanted)["trials"] == []
    with pytest.raises(StudyError, match=r"cannot be read: .*nothing"):
        read_tables(url, {"studies": ("nothing",)})


def test_a_server_that_is_away_is_told() -> None:
    with pytest.raises(Unreachable, match="does not answer"):
        read_tables("postgresql://127.0.0.1:9/none", {})
