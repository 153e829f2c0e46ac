"""What is optional is imported only by a process whose configuration asks for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pointsman import extras
from pointsman.config.load import load_text
from pointsman.errors import ConfigError

ROOT = Path(__file__).parents[2]
WORKER = '[[workers]]\nname = "a"\ndescription = "d"\nmodel = "openai/m"\nbase_url = "http://127.0.0.1:9"\n'
PLAIN = WORKER
TRACED = '[tracing]\nendpoint = "http://127.0.0.1:9/v1/traces"\n' + WORKER
LITELLM = WORKER + 'quirks = { api = "litellm" }\n'
SCRIPT = """
import asyncio, sys
from pathlib import Path
from harness.gateway.app import Gateway
from harness.gateway.state import State
from pointsman.config import Settings, load_config
from pointsman.logs import configure_logging

connected = []
sys.addaudithook(lambda event, args: connected.append(args[-1]) if event == "socket.connect" else None)

async def main():
    home = Path(sys.argv[1])
    settings = Settings(home, 1, home / "pointsman.toml", {})
    state = State(settings, load_config(settings.config_file), "postgresql+psycopg://127.0.0.1:1/none")
    Gateway(state)
    await state.open()
    await state.close()

asyncio.run(main())
print([name for name in ("litellm", "openai", "opentelemetry.sdk") if name in sys.modules])
print(sorted({str(address[0]) for address in connected if isinstance(address, tuple)} - {"127.0.0.1", "::1"}))
"""


@pytest.mark.parametrize(
    ("toml", "modules"),
    [(PLAIN, []), (TRACED, ["opentelemetry.sdk"]), (LITELLM, ["litellm", "openai"])],
    ids=["plain", "traced", "litellm"],
)
def test_only_what_the_configuration_asks_for_is_imported_and_nothing_is_fetched(tmp_path, toml, modules):
    (tmp_path / "pointsman.toml").write_text(toml)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)], capture_output=True, text=True, cwd=ROOT, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [str(modules), "[]"]


@pytest.mark.parametrize(
    ("toml", "problem"),
    [
        (TRACED, "p.toml: tracing.endpoint: the OpenTelemetry SDK is not installed, "
                 "expected `pip install 'pointsman[tracing]'`"),
        (LITELLM, "p.toml: workers[].quirks.api: LiteLLM's SDK is not installed, "
                  "expected `pip install 'pointsman[providers]'`"),
    ],
)  # fmt: skip
def test_a_part_that_is_missing_is_said_with_its_remedy(toml, problem):
    config = load_text(toml)
    extras.require_extras(config, "p.toml", find=lambda name: object())
    with pytest.raises(ConfigError) as caught:
        extras.require_extras(config, "p.toml", find=lambda name: None)
    assert caught.value.problems == [problem]


def test_without_them_nothing_is_missing():
    extras.require_extras(load_text(PLAIN), find=lambda name: None)
