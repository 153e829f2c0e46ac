"""`pointsman init`: writes a `pointsman.toml` for the keys and servers that are here, or for the sandbox."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pointsman.commands.options import SETTING_UP, ConfigFile, Json
from pointsman.commands.output import notes, out, print_json, say
from pointsman.errors import UserError

if TYPE_CHECKING:
    from pointsman.commands.providers import Offer

HELP = """Write a pointsman.toml for the keys and servers found here.

It looks for keys in the environment (OPENAI_API_KEY, ANTHROPIC_API_KEY,
GEMINI_API_KEY, MISTRAL_API_KEY, DEEPSEEK_API_KEY, GROQ_API_KEY,
TOGETHER_API_KEY, OPENROUTER_API_KEY) and for Ollama and vLLM on this
machine. With none of them it writes the sandbox: simulated workers that
need no key. A key's value is never written, only the variable's name.
Nothing is sent to a provider.

Examples:
  pointsman init
  pointsman init --sandbox --seed 7
  pointsman init --config team.toml --force
"""

CHECK_AND_START = "next: read the descriptions, add prices, then `pointsman check` and `pointsman up`"
START = "next: `pointsman up`"


def init_command(
    sandbox: Annotated[bool, typer.Option("--sandbox", help="Write the sandbox whatever is found.")] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The sandbox's world.")] = 1,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
    json: Json = False,
    config: ConfigFile = None,
) -> None:
    from pointsman.commands.finding import find_offers
    from pointsman.config import Settings

    settings = Settings.read(config=config)
    check_free(settings.config_file, force)
    offers = [] if sandbox else find_offers(settings.environment)
    write(settings.config_file, text_for(offers, seed, settings.sandbox_port))
    if json:
        workers = [{"name": offer.name, "model": offer.model, "source": offer.source} for offer in offers]
        print_json({"file": str(settings.config_file), "sandbox": not offers, "workers": workers})
        return
    _tell(settings.config_file, offers, asked_for_sandbox=sandbox)


def register(app: typer.Typer) -> None:
    """Adds the command `init`."""
    app.command("init", help=HELP, rich_help_panel=SETTING_UP)(init_command)


def text_for(offers: list[Offer], seed: int, sandbox_port: int) -> str:
    """The file for these workers; for none, the sandbox's."""
    if offers:
        from pointsman.commands.writing import config_text

        return config_text(offers)
    from pointsman.sandbox.setup import toml_text

    return toml_text(seed, sandbox_port, "world")


def check_free(file: Path, force: bool) -> None:
    if file.exists() and not force:
        raise UserError(f"{file} exists already; --force replaces it, --config FILE writes another")


def write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{file}: cannot be written: {error.strerror}") from None


def _tell(file: Path, offers: list[Offer], *, asked_for_sandbox: bool) -> None:
    console = out()
    if not offers:
        if not asked_for_sandbox:
            say(console, "found no key in the environment, and no Ollama or vLLM on this machine", "yellow")
        say(console, f"wrote {file}: the sandbox, a simulation that needs no key")
        say(notes(), START, "dim")
        return
    say(console, f"wrote {file} with {len(offers)} worker{'s' if len(offers) > 1 else ''}:")
    for source in dict.fromkeys(offer.source for offer in offers):
        names = ", ".join(offer.name for offer in offers if offer.source == source)
        say(console, f"  {source}: {names}")
    say(notes(), CHECK_AND_START, "dim")
