"""Who a visitor is, what they may do and which projects they see."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from dashboard.people import may, named_for, role_of
from pointsman.actions.actor import Actor

ROLES = {"Ana@Example.org": "operator", "@example.org": "reviewer", "eve@other.org": "king"}


@pytest.mark.parametrize(
    ("email", "role"),
    [
        ("ana@example.org", "operator"), ("ben@example.org", "reviewer"), ("ben@example.org.evil.com", "viewer"),
        ("eve@other.org", "viewer"), ("", "viewer"),
    ],
)  # fmt: skip
def test_a_role_by_address_or_domain(email, role):
    assert role_of(email, ROLES) == role


def test_who_may():
    assert may(Actor("a", "operator"), "reviewer")
    assert not may(Actor("a", "reviewer"), "operator")


def test_projects_by_address_and_domain_together():
    table = {"ana@example.org": ["west"], "@Example.org": ["east"]}
    assert named_for("ana@example.org", table) == {"east", "west"}
    assert named_for("ben@example.org", table) == {"east"}
    assert named_for("eve@other.org", table) == frozenset()


@pytest.fixture
def two(empty_database, seeding):
    now = datetime.now(UTC)
    east = seeding.seed(empty_database, until=now, number=12, project="east")
    west = seeding.seed(empty_database, until=now, number=30, project="west")
    return east, west


def test_only_the_named_projects_are_shown(two, page_of, configure, empty_database):
    configure(empty_database, '[dashboard]\nprojects = ["west"]')
    app = page_of("overview").run()
    app.segmented_control(key="range").set_value("All").run()
    assert app.metric[0].value == "30"
    assert [item.label for item in app.sidebar.selectbox] == []


def test_a_link_into_another_project_finds_nothing(two, page_of, configure, empty_database):
    east, west = two
    configure(empty_database, '[dashboard]\nprojects = ["west"]')
    app = page_of("decisions")
    app.query_params["decision"] = east.decisions[0]["id"]
    app.run()
    assert [error.value for error in app.error] == ["There is no such decision."]
    app.query_params["decision"] = west.decisions[0]["id"]
    app.run()
    assert [error.value for error in app.error] == []


def test_nobodys_project(two, page_of, configure, empty_database):
    configure(empty_database, '[dashboard]\nprojects = ["north"]')
    app = page_of("decisions").run()
    assert [error.value for error in app.error] == ["None of the projects here is yours to see."]
    assert len(app.dataframe) == 0
