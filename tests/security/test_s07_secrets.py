"""S7: a database's error never quotes what a statement carried."""

from __future__ import annotations

import traceback

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, OperationalError

from pointsman.database.engine import make_engine

SECRET = "sk-CANARY0123456789abcdef"


def test_parameters_stand_in_no_error(database_url):
    engine = make_engine(database_url)
    assert engine.hide_parameters is True
    try:
        with engine.connect() as connection, pytest.raises(DBAPIError) as caught:
            connection.execute(text("SELECT no_such_function(:secret)"), {"secret": SECRET})
    finally:
        engine.dispose()
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert SECRET not in str(caught.value) and SECRET not in repr(caught.value)


def test_a_database_that_is_away_is_named_without_its_password():
    engine = make_engine(f"postgresql://someone:{SECRET}@127.0.0.1:1/none")
    with pytest.raises(OperationalError) as caught, engine.connect():
        pass
    engine.dispose()
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert SECRET not in repr(engine)
