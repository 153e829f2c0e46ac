"""With no decision yet, every page says how to make one."""

from __future__ import annotations

from datetime import UTC, datetime


def test_an_empty_log_shows_the_first_request(app, decisions_app, configure, empty_database):
    configure(empty_database, port=4321)
    for page in (app.run(), decisions_app.run()):
        assert not page.exception
        assert page.info[0].value.startswith("No decisions yet.")
        assert "http://127.0.0.1:4321/v1/chat/completions" in page.code[0].value


def test_two_projects_can_be_told_apart(overview_app, configure, empty_database, seeding):
    now = datetime.now(UTC)
    seeding.seed(empty_database, until=now, number=12, project="east")
    west = seeding.seed(empty_database, until=now, number=30, project="west")
    configure(empty_database)
    app = overview_app.run()
    app.segmented_control(key="range").set_value("All").run()
    assert app.metric[0].value == "42"
    app.selectbox(key="project").set_value(west.project).run()
    assert app.metric[0].value == "30"
