"""Before tables and procedures that somebody else may have made are used: are they ours, and
nothing more?

Whoever owns a table can hang code on it (a view, a rule, a trigger, a policy, a default, a
constraint, an index with a function) that runs with the rights of those who use it; the same holds
for a changed procedure. So each connection first asks the catalogue: the tables must be plain
tables without any of these, and the procedures, word for word, those of `postgres_schema`. A
superuser, whose rights are the most worth stealing, works only with tables of a superuser.
"""

import psycopg

from scrimp.errors import StorageError
from scrimp.storage.postgres_schema import routines

__all__ = ["check_routines", "check_tables"]

TABLES = ("scrimp_schema", "scrimp_studies", "scrimp_events", "scrimp_leases", "scrimp_kept")

FOREIGN_TABLES = """
SELECT relname, CASE
    WHEN relkind <> 'r' THEN 'is not a plain table'
    WHEN relhasrules THEN 'has rules'
    WHEN relrowsecurity THEN 'has row policies'
    WHEN EXISTS (SELECT FROM pg_catalog.pg_trigger WHERE tgrelid = c.oid AND NOT tgisinternal) THEN 'has triggers'
    WHEN EXISTS (SELECT FROM pg_catalog.pg_attrdef WHERE adrelid = c.oid) THEN 'has column defaults'
    WHEN EXISTS (SELECT FROM pg_catalog.pg_constraint WHERE conrelid = c.oid AND contype = 'c') THEN 'has checks'
    WHEN EXISTS (SELECT FROM pg_catalog.pg_index WHERE indrelid = c.oid AND (indexprs IS NOT NULL
        OR pg_get_expr(indpred, indrelid) !~ '^\\((decision|batch) IS NOT NULL\\)$')) THEN 'has other indexes'
    WHEN current_setting('is_superuser') = 'on' AND NOT rolsuper THEN 'belongs to ' || quote_ident(rolname)
END FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_roles AS owner ON owner.oid = relowner
WHERE c.oid = ANY (SELECT to_regclass(name) FROM unnest(%s::text[]) AS name)
"""

ROUTINES = """
SELECT proname, prosrc, prosecdef OR proconfig IS NOT NULL, l.lanname FROM pg_catalog.pg_proc
JOIN pg_catalog.pg_language AS l ON l.oid = prolang
WHERE proname = ANY (%s)
AND pronamespace = (SELECT relnamespace FROM pg_catalog.pg_class WHERE oid = to_regclass('scrimp_schema'))
"""

SCHEMA = """
SELECT quote_ident(nspname) || '.' FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace AS n ON n.oid = relnamespace
WHERE pg_class.oid = to_regclass('scrimp_schema')
"""


def check_tables(connection: "psycopg.Connection[tuple[object, ...]]", shown: str) -> None:
    """`StorageError` when a table of scrimp is something else, or somebody else's where that is a
    danger."""
    for table, trouble in connection.execute(FOREIGN_TABLES, (list(TABLES),)).fetchall():
        if trouble is not None:
            raise StorageError(
                f"{table} in {shown} {trouble}, so its owner could run code with your rights;"
                " connect as that owner or as a role with few rights, or let a superuser make the"
                " tables"
                if str(trouble).startswith("belongs")
                else (
                    f"{table} in {shown} {trouble}, which scrimp did not make: it could run code"
                    " with your rights. Ask its owner, and use another schema or database"
                    " meanwhile"
                )
            )


def check_routines(connection: "psycopg.Connection[tuple[object, ...]]", shown: str) -> None:
    """`StorageError` when a procedure of scrimp is not the one that this version makes."""
    (schema,) = connection.execute(SCHEMA).fetchone() or ("",)
    ours = routines(str(schema))
    found = connection.execute(ROUTINES, (list(ours),)).fetchall()
    for name, source, powers, language in found:
        if source != ours[str(name)] or powers or language != "plpgsql":
            raise StorageError(
                f"the procedure {name} in {shown} is not the one that scrimp made, and could run"
                " code with your rights. Ask the owner of the tables, and use another schema or"
                " database meanwhile"
            )
    if sorted(str(row[0]) for row in found) != sorted(ours):
        raise StorageError(
            f"procedures of scrimp are missing or doubled in {shown}; restore a backup of the"
            " database"
        )
