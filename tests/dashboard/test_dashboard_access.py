"""Who gets in: loopback alone without a password, the right password, listed addresses."""

from __future__ import annotations

import pytest
import streamlit.config

from dashboard.access import allowed, is_loopback, same


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "::1", "[::1]", "localhost", "LOCALHOST"])
def test_loopback_hosts(host):
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", [None, "", "0.0.0.0", "::", "10.0.0.1", "example.org", "localhost.example.org", "127.0.0.1.nip.io"]
)
def test_hosts_that_others_reach(host):
    assert not is_loopback(host)


def test_passwords_are_compared_whole():
    assert same("grüße", "grüße")
    assert not same("grüße", "grüß")
    assert not same("", "x")


@pytest.mark.parametrize(
    ("email", "verified", "expected"),
    [
        ("ann@example.org", True, True),
        ("Ann@Example.org", True, True),
        ("bob@corp.test", True, True),
        ("bob@evil-corp.test", True, False),
        ("bob@sub.corp.test", True, False),
        ("ann@example.org", False, False),
        ("eve@example.org", True, False),
        (None, True, False),
    ],
)
def test_listed_addresses_and_domains(email, verified, expected):
    assert allowed(email, verified, ["ann@example.org", "@corp.test"]) is expected


def test_without_a_password_other_hosts_get_nothing(app, configure, log, database_url):
    configure(database_url)
    streamlit.config.set_option("server.address", "0.0.0.0")
    app.run()
    assert [error.value for error in app.error] == ["This dashboard has no password, so it opens on loopback only."]
    assert not app.metric


def test_the_password_opens_and_a_wrong_one_does_not(app, configure, log, database_url, monkeypatch):
    monkeypatch.setenv("DASHBOARD_PASSWORD", "s3cret")
    configure(database_url, '[dashboard]\nauth = "password"\npassword_env = "DASHBOARD_PASSWORD"')
    streamlit.config.set_option("server.address", "0.0.0.0")
    app.run()
    assert not app.metric
    app.text_input[0].set_value("guess")
    app.button[0].click().run()
    assert [error.value for error in app.error] == ["That is not the password."]
    assert not app.metric
    app.text_input[0].set_value("s3cret")
    app.button[0].click().run()
    assert app.metric[0].label == "Decisions"


def test_a_password_that_is_not_set_opens_nothing(app, configure, log, database_url):
    configure(database_url, '[dashboard]\nauth = "password"\npassword_env = "UNSET_PASSWORD"')
    app.run()
    assert [error.value for error in app.error] == ["No password is set."]
    assert not app.text_input


def test_oidc_without_a_list_lets_nobody_in(app, configure, log, database_url):
    configure(database_url, '[dashboard]\nauth = "oidc"')
    app.run()
    assert app.error[0].value.startswith("Nobody may enter yet")
    assert not app.metric


def test_oidc_asks_a_stranger_to_log_in(app, configure, log, database_url):
    configure(database_url, '[dashboard]\nauth = "oidc"')
    app.secrets["pointsman"] = {"allow": ["ann@example.org"]}
    app.run()
    assert [button.label for button in app.button] == ["Log in"]
    assert not app.metric
