"""The commands that read and write the database: migrate, keys, decisions."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import psycopg
import pytest

from pointsman.database.engine import psycopg_url
from pointsman.database.schema import head_revision
from pointsman.identity import read_directory

UNTIL = datetime(2026, 6, 1, 12, tzinfo=UTC)
NO_DECISION = "0198c5a2-3f10-7c1e-9a53-0242ac120002"


@pytest.fixture
def file(database_url, config):
    """A configuration on the run's database."""
    return config(f'[database]\nurl = "{database_url}"\n')


@pytest.fixture
def log(file, empty_database, seeding):
    """Forty decisions, the newest hostile, explored, answered by a fallback, with feedback."""
    return seeding.seed(empty_database, until=UNTIL, number=40)


@pytest.fixture
def fresh_url(database_url):
    """A database without a schema on the run's server."""
    with psycopg.connect(psycopg_url(database_url), autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS bare WITH (FORCE)")
        connection.execute("CREATE DATABASE bare")
    yield database_url.replace("/pointsman?", "/bare?")
    with psycopg.connect(psycopg_url(database_url), autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS bare WITH (FORCE)")


def test_migrate_says_from_where_to_where_and_check_whether_it_is_current(run, config, fresh_url):
    config(f'[database]\nurl = "{fresh_url}"\n')
    head = head_revision()
    checked = run("migrate", "--check")
    assert (checked.exit_code, checked.stdout) == (
        1, f"at no revision, the newest is {head}: run `pointsman migrate`\n",
    )  # fmt: skip
    done = run("migrate")
    assert (done.exit_code, done.stdout) == (0, f"empty → {head}\n")
    again = run("migrate", "--json")
    assert json.loads(again.stdout) == {"before": head, "after": head, "head": head, "current": True}
    checked = run("migrate", "--check")
    assert (checked.exit_code, checked.stdout) == (0, f"at {head}, the newest revision\n")


def test_to_look_at_an_embedded_database_does_not_create_it(run, config, home):
    config()
    for arguments in (["migrate", "--check"], ["decisions"], ["keys", "list"]):
        result = run(*arguments)
        assert result.exit_code in (1, 2)
        assert f"in {home} yet" in result.stderr
    assert list(home.iterdir()) == []


def test_a_key_is_printed_alone_and_once(run, file, engine):
    result = run("keys", "create", "--project", "shop", "--owner", "ana", "--scope", "serve", "--no-learn")
    assert result.exit_code == 0
    key = result.stdout.strip()
    assert result.stdout == f"{key}\n"
    assert key.startswith("pm_")
    assert "a key of project shop (serve); this is the only time it is shown" in result.stderr
    entry = read_directory(engine).find(key)
    assert (entry.scopes, entry.learn, entry.explore) == (frozenset({"serve"}), False, True)
    listed = run("keys", "list").stdout
    assert key not in listed
    assert f"{entry.id}  {key[:7]}…  in force" in listed
    assert "project shop: serve" in listed


def test_a_revoked_key_is_listed_as_such_and_no_longer_in_force(run, file, engine):
    made = json.loads(run("keys", "create", "--json").stdout)
    assert made["scopes"] == ["serve", "feedback"]
    assert read_directory(engine).find(made["key"]) is not None
    result = run("keys", "revoke", made["id"])
    assert (result.exit_code, result.stdout) == (
        0, f"revoked {made['id']}; every gateway refuses it within two seconds\n",
    )  # fmt: skip
    assert read_directory(engine).find(made["key"]) is None
    row = next(row for row in json.loads(run("keys", "--json").stdout) if row["id"] == made["id"])
    assert row["revoked_at"] is not None
    again = run("keys", "revoke", made["id"])
    assert again.exit_code == 2
    assert f"no key with id {made['id']} is in force" in again.stderr


def test_mistakes_about_keys(run, file):
    result = run("keys", "create", "--scope", "everything")
    assert (result.exit_code, result.stderr) == (
        2, "--scope: expected one of serve, feedback, jobs, admin, got 'everything'\n",
    )  # fmt: skip
    result = run("keys", "revoke", "pm_a-whole-key-pasted-by-mistake")
    assert result.exit_code == 2
    assert "pasted" not in result.stderr


def test_decisions_lists_the_newest_first_and_says_how_to_go_on(run, log):
    result = run("decisions", "--limit", "3")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert len(lines) == 6
    newest = log.decisions[-1]
    assert newest["id"] in lines[1]
    answered = log.outcomes[newest["id"]]["worker"]
    assert f"{newest['chosen']} (explored) → {answered}" in lines[0]
    assert "  ok  " in lines[0]
    assert result.stderr.strip() == f"older: the same with --before {log.decisions[-3]['id']}"
    older = run("decisions", "list", "-n", "3", "--before", log.decisions[-3]["id"])
    assert log.decisions[-4]["id"] in older.stdout.splitlines()[1]


def test_a_wide_terminal_gets_a_table(run, log):
    rows = [line.split("│")[1:-1] for line in run("decisions", "-n", "2", COLUMNS="200").stdout.splitlines()]
    rows = [[cell.strip() for cell in row] for row in rows if row]
    assert rows[0][:3] == ["when (UTC)", "id", "request"]
    assert rows[1][1] == log.decisions[-1]["id"]


@pytest.mark.parametrize(
    ("arguments", "keeps"),
    [
        (["--worker", "brook"], lambda log, row: row["chosen"] == "brook"),
        (["--outcome", "timeout"], lambda log, row: log.outcomes[row["id"]]["status"] == "timeout"),
        (["--search", "sonnet -hostile"], lambda log, row: "sonnet" in log.requests[row["request_id"]]["text"]),
    ],
)
def test_filters_keep_what_they_say(run, log, arguments, keeps):
    printed = json.loads(run("decisions", "--limit", "500", "--json", *arguments).stdout)
    expected = [row["id"] for row in reversed(log.decisions) if keeps(log, row)]
    assert expected
    assert [row["id"] for row in printed["decisions"]] == expected
    assert printed["older"] is None


def test_an_episode_is_a_filter(run, log):
    episode = log.decisions[0]["episode_id"]
    printed = json.loads(run("decisions", "--episode", episode, "--json").stdout)
    assert [row["id"] for row in printed["decisions"]] == [row["id"] for row in reversed(log.decisions[:3])]


def test_mistakes_about_decisions(run, log):
    result = run("decisions", "--outcome", "fine")
    assert result.exit_code == 2
    assert result.stderr.startswith("--outcome: expected one of ok, upstream_error,")
    assert run("decisions", "--before", "yesterday").exit_code == 2
    result = run("decisions", "show", NO_DECISION)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"no decision {NO_DECISION} is in the log")
    assert run("decisions", "--worker", "nobody").stdout == "no such decision is in the log\n"


def test_show_tells_one_decision_from_top_to_bottom(run, log):
    newest = log.decisions[-1]
    result = run("decisions", "show", newest["id"])
    assert result.exit_code == 0
    told = [f"decision {newest['id']}", "request", "workers", "router", "call 1", "call 2", "outcome ok", "feedback"]
    places = [result.stdout.index(part) for part in told]
    assert places == sorted(places)
    assert f"{newest['chosen']} with probability {newest['propensity']:.4f}, explored" in result.stdout
    assert "the request has no image" in result.stdout  # why `dune` was not eligible
    assert "error upstream said 503" in result.stdout
    assert "<img src=x onerror=alert(1)>" in result.stdout  # text as it is, never read as markup
    assert "**bold**" in result.stdout


def test_show_asks_the_gateway_for_what_is_on_its_way(run, log, config, fake_server, database_url):
    stored = json.loads(run("decisions", "show", log.decisions[0]["id"], "--json").stdout)
    young = stored | {"decision": stored["decision"] | {"id": NO_DECISION}}
    fake_server.answers[f"GET /v1/decisions/{NO_DECISION}"] = (200, young)
    config(f'[database]\nurl = "{database_url}"\n[gateway]\nport = {fake_server.port}\n')
    assert run("decisions", "show", NO_DECISION).stdout.startswith(f"decision {NO_DECISION}\n")


def test_show_by_the_completions_id_and_as_json(run, log):
    call = next(row for row in reversed(log.rows["call"]) if row["completion"])
    record = json.loads(run("decisions", "show", call["completion_id"], "--json").stdout)
    assert record["decision"]["id"] == call["decision_id"]
    assert sum(record["decision"]["probabilities"].values()) == pytest.approx(1)
    assert record["cards"]["brook"] == "Quick with words; weak at sums."
