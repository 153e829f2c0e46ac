"""The schema: up, down and up again; equal to the models; every time with its zone; in the wheel."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, create_engine, inspect, text
from sqlalchemy.engine import make_url

from pointsman.database.engine import make_engine
from pointsman.database.schema import MIGRATIONS, alembic_config, current_revision, head_revision, migrate
from pointsman.errors import UserError
from pointsman.tables import METADATA, PARTITIONED


@pytest.fixture
def fresh(database_url: str) -> Iterator[str]:
    """The URL of a database with nothing in it."""
    admin = create_engine(database_url, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(text("CREATE DATABASE fresh"))
    yield make_url(database_url).set(database="fresh").render_as_string(hide_password=False)
    with admin.connect() as connection:
        connection.execute(text("DROP DATABASE fresh WITH (FORCE)"))
    admin.dispose()


def tables(url: str) -> set[str]:
    engine = make_engine(url)
    try:
        return set(inspect(engine).get_table_names())
    finally:
        engine.dispose()


def test_up_down_up(fresh: str) -> None:
    migrate(fresh)
    made = tables(fresh)
    assert set(METADATA.tables) <= made
    command.downgrade(alembic_config(fresh), "base")
    assert tables(fresh) - {"alembic_version"} == set()
    migrate(fresh)
    assert tables(fresh) == made
    engine = make_engine(fresh)
    assert current_revision(engine) == head_revision()
    engine.dispose()


def test_each_revision_can_be_reached_alone_from_the_one_before(fresh: str) -> None:
    script = ScriptDirectory(str(MIGRATIONS))
    revisions = [revision.revision for revision in reversed(list(script.walk_revisions()))]
    for revision in revisions:
        migrate(fresh, revision)
        command.downgrade(alembic_config(fresh), "-1")
        migrate(fresh, revision)
    engine = make_engine(fresh)
    assert current_revision(engine) == revisions[-1]
    engine.dispose()


def test_there_is_one_head() -> None:
    assert len(ScriptDirectory(str(MIGRATIONS)).get_heads()) == 1


@pytest.mark.parametrize("time", range(3))
def test_the_models_and_the_migrations_are_the_same_schema(database_url: str, time: int) -> None:
    command.check(alembic_config(database_url))


def test_a_word_added_to_a_closed_set_would_be_noticed(engine: Engine) -> None:
    """Alembic does not compare checks, so we do: the words of each check, in models and in the database."""
    in_database = {}
    with engine.connect() as connection:
        found = connection.execute(
            text("SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE contype = 'c' AND conparentid = 0")
        )
        for name, definition in found:
            in_database[name] = set(definition.split("'")[1::2])
    in_models = {}
    for table in METADATA.tables.values():
        for constraint in table.constraints:
            if hasattr(constraint, "sqltext"):
                in_models[f"ck_{table.name}_{str(constraint.name).removeprefix(f'ck_{table.name}_')}"] = set(
                    str(constraint.sqltext).split("'")[1::2]
                )
    assert in_models
    assert {name: in_database.get(name) for name in in_models} == in_models


def test_every_time_has_its_zone(engine: Engine) -> None:
    with engine.connect() as connection:
        columns = connection.execute(
            text(
                "SELECT table_name, column_name, data_type FROM information_schema.columns "
                "WHERE table_schema = 'public' AND (data_type LIKE 'timestamp%' OR data_type = 'date')"
            )
        ).all()
    assert len(columns) >= 10
    assert [c for c in columns if c.data_type != "timestamp with time zone"] == []


def test_no_index_holds_peoples_text(engine: Engine) -> None:
    """A b-tree entry takes 2.7 kB: a longer text would fail the whole batch."""
    with engine.connect() as connection:
        definitions = [row[0] for row in connection.execute(text("SELECT indexdef FROM pg_indexes"))]
    for column in ("text", "completion", "raw_reply", "body", "comment"):
        assert not [d for d in definitions if "USING btree" in d and re.search(rf"[( ]{column}[,)]", d)]


def test_partitions_are_not_taken_for_changes(engine: Engine) -> None:
    with engine.connect() as connection:
        context = MigrationContext.configure(connection)
        differences = compare_metadata(context, METADATA)
    touched = {str(difference) for difference in differences}
    assert not [d for d in touched if not any(f"{t}_" in d for t in PARTITIONED) and "alembic_version" not in d]


def test_two_that_start_at_once_migrate_once(fresh: str) -> None:
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(migrate, [fresh] * 3))  # raises what any of them raised
    assert "decision_default" in tables(fresh)


def test_a_database_of_a_newer_version_is_left_alone(fresh: str) -> None:
    migrate(fresh)
    engine = make_engine(fresh)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    with pytest.raises(UserError, match=r"cannot be brought to head: .*9999"):
        migrate(fresh)


def test_migrations_are_package_data() -> None:
    """The build takes the folder `platform/pointsman` whole; that the files are there is what is left to see."""
    import tomllib

    import pointsman

    package = Path(pointsman.__file__).parent
    assert package in MIGRATIONS.parents
    project = tomllib.loads((package.parent.parent / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert "platform/pointsman" in wheel["packages"] and not {"exclude", "include", "only-include"} & set(wheel)
    assert {"env.py", "script.py.mako", "versions"} <= {path.name for path in MIGRATIONS.iterdir()}
