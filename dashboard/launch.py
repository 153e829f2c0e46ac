"""The command that starts the dashboard, and the environment it runs in. Starts nothing itself."""

from __future__ import annotations

import sys
from pathlib import Path

from dashboard.access import is_loopback
from pointsman.config import Config, Settings
from pointsman.errors import ConfigError

APP = Path(__file__).with_name("app.py")
SECRETS = "dashboard-secrets.toml"

LIGHT = {"primaryColor": "#0072B2", "backgroundColor": "#FFFFFF", "secondaryBackgroundColor": "#F4F6F8"}
DARK = {"primaryColor": "#56B4E9", "backgroundColor": "#12161C", "secondaryBackgroundColor": "#1B222B"}


def port(settings: Settings, config: Config) -> int:
    return config.dashboard.port or settings.dashboard_port


def url(settings: Settings, config: Config) -> str:
    """Where a person opens it."""
    host = config.dashboard.host
    return f"http://{f'[{host}]' if ':' in host else host}:{port(settings, config)}"


def command(settings: Settings, config: Config) -> list[str]:
    """The command line; raises `ConfigError` where it would show the log to whoever can reach the port."""
    check(settings, config)
    options = {
        "server.address": config.dashboard.host,
        "server.port": str(port(settings, config)),
        "server.headless": "true",
        "server.enableXsrfProtection": "true",
        "server.enableCORS": "true",
        "server.fileWatcherType": "none",
        "server.runOnSave": "false",
        "browser.gatherUsageStats": "false",
        "client.toolbarMode": "viewer",
        # What failed goes to the server's log; a page never shows a stack trace or a path.
        "client.showErrorDetails": "none",
        "client.showErrorLinks": "false",
        # Its CSV does not neutralise formulas; the page Data exports.
        "client.disableDataExport": "true",
    }
    options |= {f"theme.light.{key}": value for key, value in LIGHT.items()}
    options |= {f"theme.dark.{key}": value for key, value in DARK.items()}
    flags = [f"--{name}={value}" for name, value in options.items()]
    if config.dashboard.auth == "oidc":
        flags.append(f"--secrets.files={settings.home / SECRETS}")
    return [sys.executable, "-m", "streamlit", "run", str(APP), *flags]


def environment(settings: Settings) -> dict[str, str]:
    """The settings as the app will read them back, for `subprocess`."""
    return {
        **settings.environment,
        "POINTSMAN_HOME": str(settings.home),
        "POINTSMAN_PORT": str(settings.port),
        "POINTSMAN_CONFIG": str(settings.config_file),
    }


def check(settings: Settings, config: Config) -> None:
    """Raises `ConfigError` for a way in that is open to everybody, or that nobody can pass."""
    file, section = settings.config_file, config.dashboard
    if section.auth == "none" and not is_loopback(section.host):
        raise ConfigError(
            [
                f'{file}: dashboard.auth: "none" serves loopback only, but dashboard.host is '
                f'"{section.host}"; expected "password" or "oidc", or a host such as 127.0.0.1'
            ]
        )
    if section.auth == "password" and settings.secret(section.password_env) is None:
        raise ConfigError([f"{file}: dashboard.password_env: the variable {section.password_env} is unset or empty"])
    if section.auth == "oidc" and not (settings.home / SECRETS).is_file():
        raise ConfigError(
            [
                f'{file}: dashboard.auth: "oidc" needs {settings.home / SECRETS}, with [auth] as Streamlit\'s '
                "st.login expects it and [pointsman] allow, a list of addresses or @domains"
            ]
        )
