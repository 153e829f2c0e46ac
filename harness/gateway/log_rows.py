"""Rows that must be on disk before their answer: for every endpoint but the hot one, which overlaps the sync."""

from __future__ import annotations

from harness.gateway.responses import unlogged
from harness.gateway.state import State
from pointsman.errors import StoreError
from pointsman.journal.lines import TableRow


async def log_rows(state: State, rows: list[TableRow]) -> None:
    """Appends and syncs. Raises a 503 where the journal cannot take them."""
    try:
        state.journal.check_room()
        state.journal.append(rows)
        await state.journal.synced()
    except StoreError as error:
        raise unlogged(error) from error
