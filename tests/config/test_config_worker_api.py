"""`quirks.api`: which API a worker speaks, and the header its key goes into."""

from __future__ import annotations

import pytest

from pointsman.config.load import load_text
from pointsman.errors import ConfigError

WORKER = '[[workers]]\nname = "a"\ndescription = "d"\nmodel = "m"\nbase_url = "http://127.0.0.1:1"\n'


@pytest.mark.parametrize(
    ("quirks", "api", "header"),
    [
        ("", "openai", "authorization"),
        ('api = "openai"', "openai", "authorization"),
        ('api = "anthropic"', "anthropic", "x-api-key"),
        ('api = "anthropic", auth_header = "Authorization"', "anthropic", "Authorization"),
    ],
)
def test_the_header_follows_the_api(quirks: str, api: str, header: str) -> None:
    read = load_text(f"{WORKER}quirks = {{ {quirks} }}\n").workers[0].quirks
    assert (read.api, read.auth_header) == (api, header)


def test_another_api_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"quirks\.api"):
        load_text(f'{WORKER}quirks = {{ api = "cohere" }}\n')


def test_the_time_of_silence_before_a_sign_of_life() -> None:
    assert load_text(WORKER).gateway.keep_alive == 15
    with pytest.raises(ConfigError, match="keep_alive"):
        load_text(f"[gateway]\nkeep_alive = 0\n{WORKER}")
