"""Agent files as workers: heads as they are written in the wild, names made fit, and a file that the check takes."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from pointsman.commands.app import build_app
from pointsman.config.agents import Agent, agent_of, read_agents
from pointsman.config.load import load_text
from pointsman.errors import UserError


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("name: x\ndescription: Does tasks: all of them\nmodel: sonnet", ("Does tasks: all of them", "sonnet")),
        (
            'name: x\ndescription: "Says \\"yes\\".\\nTwice."\nmodel: opus # dear',
            ('Says "yes".\nTwice.', "opus"),
        ),
        ("name: x\ndescription: 'It''s quick'", ("It's quick", None)),
        (
            "name: x\ndescription: >\n  Folds\n  lines.\ntools: Read, Bash\nmodel: inherit",
            ("Folds lines.", None),
        ),
        ("name: x\ndescription: |\n  Keeps\n  lines.\nmodel: haiku", ("Keeps\nlines.", "haiku")),
        (
            "name: x\ndescription: Goes on\n  in the next line\nmodel: haiku",
            ("Goes on in the next line", "haiku"),
        ),
    ],
)
def test_heads(head, expected):
    agent = agent_of(f"---\n{head}\n---\n\nYou are the executor.\n", "file")
    assert agent == Agent("x", *expected, len("You are the executor."))


@pytest.mark.parametrize("text", ["# no head", "---\nname: x\n---\nno description", "---\nname: x\ndescription: open"])
def test_what_is_no_agent(text):
    assert agent_of(text, "file") is None


def test_a_name_is_made_fit():
    assert agent_of("---\ndescription: d\n---\n", "Code Reviewer!").name == "Code-Reviewer"


def test_the_command_writes_workers_that_the_check_takes(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "a.md").write_text("---\nname: planner\ndescription: Plans.\nmodel: opus\n---\nPrompt.\n")
    (tmp_path / "deep" / "b.md").write_text("---\nname: writer\ndescription: Writes.\n---\n")
    (tmp_path / "README.md").write_text("No agent.")
    options = ["--base-url", "http://127.0.0.1:1/v1", "--model", "opus=large-2", "--default-model", "small-1"]
    done = CliRunner().invoke(build_app(), ["agents", str(tmp_path), *options])
    assert done.exit_code == 0, done.output
    config = load_text(done.stdout)
    assert [(worker.name, worker.description, worker.model) for worker in config.workers] == [
        ("planner", "Plans.", "large-2"), ("writer", "Writes.", "small-1"),
    ]  # fmt: skip


def test_what_is_refused(tmp_path):
    with pytest.raises(UserError, match="expected Markdown files"):
        read_agents(tmp_path)
    for name in ("a.md", "b.md"):
        (tmp_path / name).write_text("---\nname: twin\ndescription: d\n---\n")
    with pytest.raises(UserError, match="a second agent is called 'twin'"):
        read_agents(tmp_path)
