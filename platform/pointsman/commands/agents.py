"""`pointsman agents`: a coding agent's own agent files as workers, ready for `pointsman.toml`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from pointsman.commands.options import SETTING_UP
from pointsman.commands.output import notes, say
from pointsman.errors import UserError

HELP = """Turn agent files (Markdown with name, description, model) into workers.

Reads every .md file below FOLDER that begins with such a head and prints
[[workers]] for pointsman.toml: the description becomes the card. What the
files call a model (haiku, sonnet) is mapped to a provider's id by --model.

Examples:
  pointsman agents .claude/agents --base-url https://provider.example/v1 --model haiku=small-1 --model opus=large-2
  pointsman agents agents/ --base-url http://127.0.0.1:8000/v1 --default-model local >> pointsman.toml
"""


def agents_command(
    folder: Annotated[Path, typer.Argument(help="A folder of agent files, or one of them.", show_default=False)],
    base_url: Annotated[str, typer.Option("--base-url", help="The provider's OpenAI-compatible address.")],
    model: Annotated[
        list[str] | None, typer.Option("--model", help="WORD=ID: what a file's word stands for. Repeatable.")
    ] = None,
    default_model: Annotated[
        str | None, typer.Option("--default-model", help="For files that name none, or `inherit`.")
    ] = None,
    api_key_env: Annotated[str | None, typer.Option("--api-key-env", help="The variable that holds the key.")] = None,
) -> None:
    from pointsman.config.agents import read_agents, workers_toml

    agents = read_agents(folder)
    text = workers_toml(agents, _models(model or []), default_model, base_url, api_key_env)
    sys.stdout.write(text)
    say(notes(), f"{len(agents)} workers; add prices, then `pointsman check`")


def register(app: typer.Typer) -> None:
    """Adds the command `agents`."""
    app.command("agents", help=HELP, rich_help_panel=SETTING_UP)(agents_command)


def _models(given: list[str]) -> dict[str, str]:
    models = {}
    for one in given:
        word, sign, identity = one.partition("=")
        if not (word and sign and identity):
            raise UserError(f"--model {one}: expected WORD=ID, such as haiku=the-providers-id")
        models[word] = identity
    return models
