"""Doing something: one transaction with its record, and what went wrong in words on the page."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import streamlit as st
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import OperationalError

from pointsman.errors import UserError

T = TypeVar("T")
DONE = "done_message"


def act(engine: Engine, action: Callable[[Connection], T]) -> T | None:
    """The action's value; None where it was refused, and the page says why."""
    try:
        with engine.begin() as connection:
            return action(connection)
    except UserError as error:
        refused(str(error))
    except OperationalError as error:
        st.error("The database did not take it: nothing was done. Try again.")
        st.code(str(error.orig).strip(), language=None, wrap_lines=True)
    return None


def did(engine: Engine, action: Callable[[Connection], object]) -> bool:
    """Whether an action whose value nobody needs was done."""
    return act(engine, lambda connection: (action(connection), True)) is not None


def refused(why: str) -> None:
    st.error("That was refused.")
    st.code(why, language=None, wrap_lines=True)


def say_next(message: str) -> None:
    """A word that stands on the page as it is drawn anew."""
    st.session_state[DONE] = message
    st.rerun()


def said() -> None:
    """What the last action left to say."""
    if (message := st.session_state.pop(DONE, None)) is not None:
        st.success(message)
