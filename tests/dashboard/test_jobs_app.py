"""The jobs page: forms made from dataclasses, one job per double click, curves, logs, cancel, compare."""

from __future__ import annotations

import pytest
from sqlalchemy import delete, text

from dashboard.parts.job_compare import differing
from dashboard.words import duration
from pointsman.identity import ensure_project
from pointsman.ids import new_id
from pointsman.jobs.kinds import KINDS
from pointsman.jobs.params import options
from pointsman.jobs.store import Jobs
from pointsman.tables import METADATA


@pytest.fixture(scope="module")
def emptied(empty):
    empty()


@pytest.fixture
def jobs(emptied, engine):
    """No job, and one project. To truncate all tables for each test takes ten times as long."""
    with engine.begin() as connection:
        for table in ("job", "actor_log", "project"):
            connection.execute(delete(METADATA.tables[table]))
        ensure_project(connection)
    return Jobs(engine)


@pytest.fixture
def page(page_of, configure, jobs, database_url):
    configure(database_url)
    return page_of("jobs")


def button(page, label):
    return next(button for button in page.button if button.label == label)


def started(jobs, project=None, **params):
    with jobs.engine.begin() as connection:
        mine = ensure_project(connection, project or "default")
    return jobs.start("self-test", params, project_id=mine, asked_by="me")


def metric(jobs, job, name, values):
    with jobs.engine.begin() as connection:
        for step, value in enumerate(values):
            connection.execute(
                text(
                    "INSERT INTO job_log (id, job_id, at, attempt, level, name, step, value)"
                    " VALUES (:id, :job, now(), 1, 'metric', :name, :step, :value)"
                ),
                {"id": new_id(), "job": job.id, "name": name, "step": step, "value": value},
            )


def end(jobs, job, state="done", result="{}"):
    with jobs.engine.begin() as connection:
        connection.execute(
            text("UPDATE job SET state = :state, ended_at = now(), started_at = now(), result = CAST(:result AS jsonb)"
                 " WHERE id = :id"),
            {"state": state, "id": job.id, "result": result},
        )  # fmt: skip


def test_every_kind_has_a_field_for_each_parameter(page):
    page.run()
    for name in KINDS:
        page.selectbox(key="start-kind").set_value(name).run()
        assert not page.exception
        drawn = [*page.text_input, *page.number_input, *page.checkbox, *page.selectbox, *page.multiselect]
        keys = {one.key for one in drawn}
        assert {f"param-{name}-{option.name}" for option in options(KINDS[name].params)} <= keys


def test_the_form_has_defaults_bounds_and_help(page):
    page.run()
    page.selectbox(key="start-kind").set_value("self-test").run()
    field = page.number_input(key="param-self-test-steps")
    assert (field.value, field.min, field.max) == (20, 0, 1_000_000)
    assert field.help.startswith("steps of the first stage")


def test_a_job_is_foretold_started_and_shown(page, jobs):
    page.run()
    page.selectbox(key="start-kind").set_value("self-test").run()
    page.number_input(key="param-self-test-steps").set_value(100)
    page.number_input(key="param-self-test-cost").set_value(0.25)
    button(page, "What will it take?").click().run()
    assert page.info[0].value.startswith("Time: about 5.0 s. Cost: about \\$25.00.")
    button(page, "Start").click().run()
    assert not page.exception
    (job,) = jobs.list()
    assert (job.kind, job.params["steps"], job.state) == ("self-test", 100, "queued")
    assert page.query_params["job"] == job.id
    assert page.code[0].value == job.id


def test_the_same_start_twice_is_one_job(page, jobs):
    for _ in range(2):
        page.query_params.clear()
        page.run()
        page.selectbox(key="start-kind").set_value("retention").run()
        button(page, "Start").click().run()
    assert len(jobs.list()) == 1


def test_a_parameter_that_does_not_fit_is_explained(page, jobs):
    page.run()
    page.selectbox(key="start-kind").set_value("probe").run()
    button(page, "Start").click().run()
    assert page.error[0].value == "That was refused."
    assert "params.file: expected a text" in page.code[0].value
    assert jobs.list() == []


def test_a_viewer_cannot_start_or_cancel(page_of, configure, jobs, database_url):
    configure(database_url, '[dashboard]\nrole = "viewer"')
    page = page_of("jobs").run()
    assert [one.label for one in page.button] == []
    assert "needs the role operator" in page.caption[0].value
    job = started(jobs)
    page.query_params["job"] = job.id
    page.run()
    assert button(page, "Cancel the job").disabled


def test_progress_curves_and_words_of_a_running_job(page, jobs):
    job = started(jobs, steps=5)
    metric(jobs, job, "loss", [3.0, 2.0, 1.5])
    metric(jobs, job, "reward", [0.1, 0.2])
    with jobs.engine.begin() as connection:
        connection.execute(
            text("UPDATE job SET state = 'running', stage = 'steps', done = 3, total = 5, eta_s = 61 WHERE id = :id"),
            {"id": job.id},
        )
        connection.execute(
            text("INSERT INTO job_log (id, job_id, at, attempt, level, message)"
                 " VALUES (:id, :job, now(), 1, 'info', '<b>half</b> way')"),
            {"id": new_id(), "job": job.id},
        )  # fmt: skip
    page.query_params["job"] = job.id
    page.run()
    assert not page.exception
    assert {one.label: one.value for one in page.metric}["State"] == "running"
    assert any("<b>half</b> way" in one.value for one in page.code)
    assert any("▶ steps" in one.value.replace("\\", "") for one in page.caption)
    assert len(page.get("vega_lite_chart")) == 2


def test_cancel_and_try_again(page, jobs):
    job = started(jobs)
    page.query_params["job"] = job.id
    page.run()
    button(page, "Cancel the job").click().run()
    assert jobs.get(job.id).state == "cancelled"
    button(page, "Try again").click().run()
    assert jobs.get(job.id).state == "queued"
    with jobs.engine.connect() as connection:
        done = list(connection.scalars(text("SELECT action FROM actor_log ORDER BY id")))
    assert done == ["job_cancel", "job_retry"]


def test_two_runs_beside_each_other(page, jobs):
    first, second = started(jobs, steps=5), started(jobs, steps=9)
    for job, values in ((first, [3, 2]), (second, [3, 1])):
        metric(jobs, job, "loss", values)
        end(jobs, job, result='{"digest": "x"}')
    page.query_params["job"] = first.id
    page.run()
    page.selectbox(key="compare-with").set_value(next(
        one for one in jobs.list() if one.id == second.id
    ))  # fmt: skip
    button(page, "Compare").click().run()
    assert not page.exception
    assert page.title[0].value == "Two runs"
    differ = page.dataframe[1].value
    assert differ.iloc[0].tolist() == ["steps", "5", "9"]
    assert len(page.get("vega_lite_chart")) == 1


def test_another_projects_job_is_not_shown(page, jobs):
    job = started(jobs, project="other")
    page.run()
    page.query_params["job"] = job.id
    page.selectbox(key="project").set_value(_default(jobs)).run()
    assert page.error[0].value == "There is no such job."


def _default(jobs):
    with jobs.engine.begin() as connection:
        return ensure_project(connection)


def test_an_unknown_job_is_explained(page):
    page.query_params["job"] = "nonsense"
    page.run()
    assert [one.value for one in page.error] == ["There is no such job."]


@pytest.mark.parametrize(
    ("seconds", "shown"), [(None, "–"), (0.5, "0.5 s"), (42, "42 s"), (200, "3 min 20 s"), (18_720, "5 h 12 min")]
)
def test_durations(seconds, shown):
    assert duration(seconds) == shown


def test_what_differs():
    assert differing({"a": 1, "b": 2}, {"a": 1, "b": 3, "c": None}) == [("b", "2", "3")]
