"""Rows of somebody else's PostgreSQL tables, read and nothing more."""

from collections.abc import Mapping, Sequence

from scrimp.errors import PluginError, StudyError, Unreachable

__all__ = ["read_tables"]

Cell = str | int | float | None

SECONDS = 10  # until a server that does not answer is given up


def read_tables(
    url: str, columns: Mapping[str, Sequence[str]]
) -> dict[str, list[tuple[Cell, ...]]]:
    """The named columns of the named tables, in one read-only transaction; a table that is not
    there has no rows. `Unreachable` when the server does not answer."""
    try:
        import psycopg
        from psycopg import sql
    except ModuleNotFoundError:
        raise PluginError(
            "reading a PostgreSQL database needs psycopg; pip install 'scrimp[postgres]'"
        ) from None
    plain = "postgresql://" + url.split("://", 1)[-1]  # SQLAlchemy names its driver too
    try:
        with psycopg.connect(plain, connect_timeout=SECONDS) as connection:
            connection.read_only = True
            found = connection.execute(
                "SELECT table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE'"
            ).fetchall()
            there = {str(name) for (name,) in found}
            return {
                table: connection.execute(
                    sql.SQL("SELECT {} FROM {}").format(
                        sql.SQL(", ").join(map(sql.Identifier, names)), sql.Identifier(table)
                    )
                ).fetchall()
                if table in there
                else []
                for table, names in columns.items()
            }
    except psycopg.OperationalError as error:
        raise Unreachable(f"the PostgreSQL server does not answer: {error}") from None
    except psycopg.Error as error:
        raise StudyError(f"the PostgreSQL database cannot be read: {error}") from None
