"""The command that starts the dashboard, and the configurations it refuses."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dashboard import launch
from pointsman.config import Settings, load_text
from pointsman.errors import ConfigError


@pytest.fixture
def make(tmp_path, seeding):
    def made(section: str = "", **environment: str):
        variables = {"POINTSMAN_HOME": str(tmp_path), "POINTSMAN_PORT": "7000", **environment}
        return Settings.read(variables, cwd=tmp_path), load_text(section + "\n" + seeding.CONFIG)

    return made


def test_the_command_line(make):
    command = launch.command(*make())
    assert command[:4] == [sys.executable, "-m", "streamlit", "run"]
    assert Path(command[4]).is_file()
    for flag in (
        "--server.address=127.0.0.1",
        "--server.port=7001",
        "--server.headless=true",
        "--server.enableXsrfProtection=true",
        "--server.fileWatcherType=none",
        "--browser.gatherUsageStats=false",
    ):
        assert flag in command
    assert not any("secrets" in word for word in command)


def test_no_page_stands_beside_the_app_where_streamlit_would_serve_it_past_access():
    assert not launch.APP.with_name("pages").exists()


def test_the_configured_port_wins(make):
    settings, config = make("[dashboard]\nport = 9999")
    assert "--server.port=9999" in launch.command(settings, config)
    assert launch.url(settings, config) == "http://127.0.0.1:9999"


def test_the_environment_carries_the_settings(make, tmp_path):
    settings, _ = make(KEPT="yes")
    environment = launch.environment(settings)
    assert Settings.read(environment).config_file == tmp_path / "pointsman.toml"
    assert (environment["KEPT"], environment["POINTSMAN_PORT"]) == ("yes", "7000")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.4", "example.org"])
def test_open_to_others_without_a_password_is_refused(make, host):
    with pytest.raises(ConfigError, match=r'dashboard.auth: "none" serves loopback only') as raised:
        launch.command(*make(f'[dashboard]\nhost = "{host}"'))
    assert host in str(raised.value)


def test_a_password_must_be_set(make):
    section = '[dashboard]\nhost = "0.0.0.0"\nauth = "password"\npassword_env = "PW"'
    with pytest.raises(ConfigError, match=r"dashboard.password_env: the variable PW is unset or empty"):
        launch.command(*make(section, PW=""))
    command = launch.command(*make(section, PW="x"))
    assert "--server.address=0.0.0.0" in command
    assert not any(word == "x" for word in command)


def test_oidc_needs_its_secrets(make, tmp_path):
    section = '[dashboard]\nhost = "0.0.0.0"\nauth = "oidc"'
    with pytest.raises(ConfigError, match=r'dashboard.auth: "oidc" needs .*dashboard-secrets.toml'):
        launch.command(*make(section))
    (tmp_path / launch.SECRETS).write_text("[auth]\n")
    assert f"--secrets.files={tmp_path / launch.SECRETS}" in launch.command(*make(section))
