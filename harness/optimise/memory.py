"""What a search has asked and been told, on disk: a search that was cut off goes on where it stopped.

    calls.jsonl   one line per distinct prompt: its hash and the reply (what routing reads of it)
    state.json    which search this is, its spending, its candidates so far; rewritten whole after each step

A search is a function of its rows, settings and seed, apart from the replies; with the replies on record
it takes the same steps again without asking, and then goes on. No prompt and no request is stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from pointsman.errors import UserError

Reply = dict[str, Any]


class Memory:
    """In this process only, unless a folder is given. `search` names the search (a hash of all that it is)."""

    def __init__(self, folder: Path | None = None, search: str = "") -> None:
        self._replies: dict[str, Reply] = {}
        self._folder = folder
        self._search = search
        self.state: dict[str, Any] = {}
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            self._resume(folder)

    def get(self, prompt: str) -> Reply | None:
        return self._replies.get(prompt)

    def put(self, prompt: str, reply: Reply) -> None:
        """Keeps a reply under its prompt's hash; on disk before it returns."""
        self._replies[prompt] = reply
        if self._folder is not None:
            with (self._folder / "calls.jsonl").open("ab") as file:
                file.write(msgspec.json.encode({"prompt": prompt, "reply": reply}) + b"\n")

    def save(self, state: Mapping[str, Any]) -> None:
        """Replaces the state, atomically."""
        self.state = dict(state)
        if self._folder is None:
            return
        file = self._folder / "state.json"
        fresh = file.with_suffix(".new")
        content = msgspec.json.encode({"search": self._search, **state}, enc_hook=str)
        fresh.write_bytes(msgspec.json.format(content, indent=2))
        fresh.replace(file)

    def _resume(self, folder: Path) -> None:
        file = folder / "state.json"
        if file.exists():
            state = msgspec.json.decode(file.read_bytes())
            if state.pop("search", None) != self._search:
                raise UserError(
                    f"{folder}: holds the state of another search (other rows, settings or seed); name another"
                )
            self.state = state
        else:
            self.save({})
        calls = folder / "calls.jsonl"
        if not calls.exists():
            return
        for line in calls.read_bytes().split(b"\n"):
            try:
                entry = msgspec.json.decode(line) if line else None
            except msgspec.DecodeError:
                continue  # the line that was being written when the search was cut off
            if isinstance(entry, dict):
                self._replies[entry["prompt"]] = entry["reply"]
