"""Who may look: nobody but this machine, or those with the password, or those an OIDC provider vouches for.

`none` is for loopback alone, checked before the server starts and again by every session, so that
`streamlit run` by hand opens nothing either. For `oidc` the provider's settings stand in Streamlit's
secrets file under `[auth]`, and the people who may enter under `[pointsman] allow` (addresses, or
`@domain`): a provider such as Google vouches for everybody, which is no permission.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Sequence
from ipaddress import ip_address

import streamlit as st
from streamlit.errors import StreamlitAuthError, StreamlitSecretNotFoundError

from pointsman.config import Config, Settings

GRANTED = "access_granted"
WRONG_PASSWORD_PAUSE = 0.5  # seconds: slows guessing down


def is_loopback(host: str | None) -> bool:
    """Whether only this machine can reach `host`. None (all interfaces, for Streamlit) is not."""
    if not host:
        return False
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def require(settings: Settings, config: Config) -> None:
    """Returns for a visitor who may look; otherwise asks them, or says why not, and ends the script."""
    auth = config.dashboard.auth
    if auth == "none":
        _require_loopback()
    elif auth == "password":
        _require_password(settings.secret(config.dashboard.password_env), config.dashboard.password_env)
    else:
        _require_login()


def same(given: str, expected: str) -> bool:
    """Compares in constant time."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode("utf-8", "replace"))


def allowed(email: str | None, verified: bool, allow: Sequence[str]) -> bool:
    """Whether a verified address is on the list, by itself or by its domain (`@example.org`)."""
    if not email or not verified:
        return False
    address = email.lower()
    entries = [entry.lower() for entry in allow]
    return address in entries or f"@{address.rpartition('@')[2]}" in entries


def _require_loopback() -> None:
    if not is_loopback(st.get_option("server.address")):
        st.error("This dashboard has no password, so it opens on loopback only.")
        st.write(
            "Start it with `pointsman dashboard`, or set `[dashboard] auth` to `password` or `oidc` in "
            "`pointsman.toml`."
        )
        st.stop()


def _require_password(password: str | None, name: str | None) -> None:
    if st.session_state.get(GRANTED):
        return
    if password is None:
        st.error("No password is set.")
        st.write(f"Set the environment variable `{name}` and start the dashboard again.")
        st.stop()
    with st.form("password"):
        given = st.text_input("Password", type="password")
        sent = st.form_submit_button("Open the dashboard")
    if sent and same(given, password):
        st.session_state[GRANTED] = True
        st.rerun()
    if sent:
        time.sleep(WRONG_PASSWORD_PAUSE)
        st.error("That is not the password.")
    st.stop()


def _require_login() -> None:
    try:
        allow = list(st.secrets["pointsman"]["allow"])
    except (KeyError, StreamlitSecretNotFoundError):
        st.error("Nobody may enter yet: the secrets file has no `[pointsman] allow` list.")
        st.stop()
    user = st.user.to_dict()
    if not user.get("is_logged_in"):
        if st.button("Log in"):
            _log_in()
        st.stop()
    email = user.get("email")
    if not allowed(str(email) if email else None, user.get("email_verified", False) is True, allow):
        st.error("You are logged in, but your address is not on this dashboard's list.")
        st.button("Log out", on_click=st.logout)
        st.stop()


def _log_in() -> None:
    try:
        st.login()
    except StreamlitAuthError as error:
        st.error("The OIDC provider is not set up: Streamlit's `[auth]` secrets, and `pip install Authlib`.")
        st.code(str(error), language=None, wrap_lines=True)
