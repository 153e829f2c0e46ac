"""What must hold of the repository as a whole: rooms, imports of the serving process, docs that stay true."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = ("torch", "dspy", "litellm", "sklearn", "pandas", "celery", "streamlit", "openai", "transformers", "numpy")


def test_platform_is_no_package() -> None:
    assert not (ROOT / "platform" / "__init__.py").exists(), "it would hide the standard library's platform"


def test_tests_are_no_packages() -> None:
    assert not list((ROOT / "tests").rglob("__init__.py"))


@pytest.mark.parametrize("module", ["harness.gateway.process", "pointsman.journal.process", "harness.gateway.serve"])
def test_a_serving_process_imports_nothing_heavy(module: str) -> None:
    code = f"import sys, {module}; print(' '.join(m for m in {HEAVY!r} if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.split() == []


def test_the_command_line_starts_light() -> None:
    code = "import sys, pointsman.commands; print(' '.join(m for m in ('sqlalchemy', 'aiohttp') if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize("page", ["README.md", "docs/architecture.md"])
def test_files_that_a_page_names_exist(page: str) -> None:
    text = (ROOT / page).read_text()
    named = re.findall(r"`((?:platform|harness|dashboard|distill|benchmarks|docs)/[\w./-]+)`", text)
    named += re.findall(r"python (benchmarks/\w+\.py)", text) + re.findall(r"\]\((docs/[\w./-]+)\)", text)
    missing = [name for name in named if not (ROOT / name).exists() and name != "platform/__init__.py"]
    assert named
    assert missing == []


def test_the_configuration_reference_is_made_from_the_code() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pointsman.commands", "check", "--keys", "--markdown"],
        capture_output=True, text=True, cwd=ROOT, check=True,
    )  # fmt: skip
    page = (ROOT / "docs" / "configuration.md").read_text()
    assert done.stdout.strip() in page, "run: make docs"


def test_nothing_tracked_names_a_machine_or_holds_a_key() -> None:
    tracked = subprocess.run(["git", "ls-files", "-z"], capture_output=True, text=True, cwd=ROOT, check=True)
    shape = re.compile(
        r"/(?:home|root|work)/[a-z]|\bsk-(?!CANARY)[A-Za-z0-9]{20,}|\bpm_[A-Za-z0-9_-]{30,}|AKIA[A-Z0-9]{16}"
    )
    found = []
    for name in tracked.stdout.split("\0"):
        file = ROOT / name
        if name and file.is_file() and file.suffix in (".py", ".md", ".toml", ".txt", ".json", ""):
            found += [f"{name}: {match.group(0)}" for match in shape.finditer(file.read_text(errors="replace"))]
    assert found == []


def test_no_unknown_pth_file_runs_code_at_start() -> None:
    """A trojaned release of a dependency once ran from a .pth file at every start of Python."""
    import sysconfig

    known = {"distutils-precedence.pth"}
    unknown = []
    for file in Path(sysconfig.get_path("purelib")).glob("*.pth"):
        lines = file.read_text(errors="replace").splitlines()
        if any(line.startswith(("import ", "import\t")) for line in lines) and file.name not in known:
            unknown.append(file.name)
    assert unknown == []
