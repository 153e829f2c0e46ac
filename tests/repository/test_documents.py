"""The pages say what the code does: references are made from it, files, links and commands that are named exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer.main

from pointsman.commands.app import build_app
from pointsman.intake import reference as intake_reference
from pointsman.jobs import reference as jobs_reference
from pointsman.tables import METADATA
from pointsman.tables import reference as tables_reference

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*.md")])
ROOMS = r"(?:platform|harness|dashboard|distill|benchmarks|docs|examples|tests)/[\w./-]+"
named = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def test_the_data_model_is_made_from_the_tables() -> None:
    assert (ROOT / "docs/data-model.md").read_text() == tables_reference.markdown(), "run: make docs"


def test_every_column_has_a_meaning_and_every_meaning_a_column() -> None:
    told = tables_reference.meanings()
    common = told.pop("common")
    for name, table in METADATA.tables.items():
        columns = {column.name for column in table.columns}
        own = set(told.pop(name, {}))
        assert columns - own - common.keys() == set(), f"{name}: say in tables/meanings.toml what these columns mean"
        assert own - columns == set(), f"{name}: meanings of columns that are not there"
    assert told == {}, "meanings of tables that are not there"


def test_the_list_of_jobs_is_made_from_their_kinds() -> None:
    assert (ROOT / "docs/jobs.md").read_text() == jobs_reference.markdown(), "run: make docs"


def test_the_columns_of_other_systems_are_made_from_the_maps() -> None:
    page = (ROOT / "docs/howto/import.md").read_text()
    assert intake_reference.within(page) == page, "run: make docs"


@named
def test_what_a_page_links_to_and_names_exists(page: Path) -> None:
    text = page.read_text()
    links = [target.partition("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in target]
    missing = [target for target in links if target and not (page.parent / target).exists()]
    files = re.findall(rf"`({ROOMS})`", text) + re.findall(r"python (benchmarks/\w+\.py)", text)
    missing += [name for name in files if name != "platform/__init__.py" and not (ROOT / name).exists()]
    assert missing == []


@named
def test_commands_that_a_page_shows_exist_with_their_options(page: Path) -> None:
    root = typer.main.get_command(build_app())
    wrong = []
    for block in re.findall(r"```(?!python|toml|json|mermaid)\w*\n(.*?)```", page.read_text(), re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            match = re.match(r"(?:\$ |KEY=\$\()?(?:\.venv/bin/)?pointsman (.*)", line.partition("#")[0].strip())
            if match and (fault := _fault(root, shlex.split(match[1].partition(" > ")[0].rstrip(")")))):
                wrong.append(f"{line.strip()}: {fault}")
    assert wrong == []


def _fault(command: Any, words: list[str]) -> str | None:
    """What is wrong with a line of words, None where every command and option in it exists."""
    while hasattr(command, "commands") and words and words[0] in command.commands:
        command, words = command.commands[words[0]], words[1:]
    if hasattr(command, "commands") and words and not words[0].startswith("-") and "list" not in command.commands:
        return f"no command {words[0]!r}"
    if hasattr(command, "commands") and "list" in command.commands and words[:1] != ["--help"]:
        command = command.commands["list"]
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    unknown = [word for word in words if word.startswith("--") and word.partition("=")[0] not in known | {"--help"}]
    return f"no option {unknown[0]}" if unknown else None


def test_every_paper_that_the_code_names_is_told_of() -> None:
    page = (ROOT / "docs/papers.md").read_text()
    code = "".join(
        file.read_text() for room in ("platform", "harness", "distill") for file in (ROOT / room).rglob("*.py")
    )
    cited = set(re.findall(r"arXiv (\d{4}\.\d{5})", code)) | set(re.findall(r"arXiv (\d{4}\.\d{4})\b", code))
    assert cited
    assert {number for number in cited if number not in page} == set()
