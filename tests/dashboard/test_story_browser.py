"""The whole story in Chromium: a bad route is seen and labelled, a router learns from it, is promoted, and rolled back.

The gateway, its sandbox and the dashboard are real; jobs that the pages start are run here, as a worker runs them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from datetime import UTC, datetime
from itertools import islice

import pytest
from playwright.sync_api import expect

from pointsman.actions.actor import Actor
from pointsman.actions.review import add_items
from pointsman.config import load_text
from pointsman.identity import DEFAULT_PROJECT_ID as PROJECT
from pointsman.jobs.store import Jobs
from pointsman.queries.reviews import open_items, verdicts
from pointsman.sandbox.serve import serving
from pointsman.sandbox.setup import toml_text
from pointsman.sandbox.tasks import tasks
from pointsman.verifiers import verify

SEED, REQUESTS = 7, 160
FAMILIES = ("ordering", "arithmetic")
RATED = 0.5
SPEC = '\n[reward.default]\nquality = ["feedback"]\n'


@pytest.fixture
def gateway(empty_database, jobs_here, running_gateway, free_port):
    """Draws every worker alike at first; it shares its data folder with the dashboard and the jobs."""
    home = jobs_here.place.settings.home
    home.mkdir(parents=True, exist_ok=True)
    with serving(SEED) as url:
        toml = toml_text(SEED, int(url.rpartition(":")[2]), "nonsense") + SPEC
        toml = toml.replace('chain = ["harness", "rule", "default"]', 'chain = ["default"]')
        toml += f'\n[database]\nurl = "{empty_database}"\n[dashboard]\nport = {free_port()}\n'
        made = running_gateway(toml.replace("epsilon = 0.05", "epsilon = 1.0\nseed = 3"), home, empty_database, {})
        made.greedy = load_text(toml.replace("epsilon = 0.05", "epsilon = 0.0"))
        yield made
        made.close()


def rated_traffic(gateway):
    """Requests to workers drawn alike, each rated by what its verifier says; shares of right answers."""
    found = defaultdict(list)
    drawn = (task for task in tasks(SEED, "train") if task.family in FAMILIES)
    for number, task in enumerate(islice(drawn, REQUESTS)):
        answer = gateway.chat(task.prompt)
        right = verify(task.verifier, answer.json()["choices"][0]["message"]["content"]) >= RATED
        found[task.family, answer.headers["x-pointsman-worker"]].append(right)
        body = {"decision_id": answer.headers["x-pointsman-decision-id"], "metric": "correct", "value": bool(right),
                "source": "person", "rater": f"rater {number % 10}"}  # fmt: skip
        assert gateway.client.post("/v1/feedback", json=body).status_code < 300
    return {key: sum(rights) / len(rights) for key, rights in found.items()}


def restart(gateway, config):
    gateway.stop()
    gateway.config = config
    gateway.start()
    gateway.refresh()


def badly_served(shares, default):
    """(family, its best worker): where the default worker falls behind most."""

    def gap(family):
        mine = {worker: share for (of, worker), share in shares.items() if of == family}
        best = max(mine, key=lambda worker: mine[worker])
        return mine[best] - mine.get(default, 0.0), family, best

    width, family, best = max(gap(family) for family in FAMILIES)
    assert width > 0.2, "the sandbox of this seed has no worker that is much better than the default one"
    return family, best


def choose(page, label, text):
    """Takes an option of a select box by typing, as a person does."""
    box = page.get_by_role("combobox", name=re.compile(f"(^|[ .]){re.escape(label)}$"))
    box.click()
    box.fill(text)
    box.press("Enter")


def start_job(page, url, kind, fill):
    """Starts a job by its form; the id in the address of its page."""
    page.goto(f"{url}/jobs")
    page.get_by_text("Start a job", exact=True).click()
    choose(page, "What", f"{kind}:")
    expect(page.get_by_label("Seed", exact=True).last).to_be_visible()
    fill()
    page.get_by_role("button", name="Start", exact=True).click()
    expect(page.get_by_role("heading", name=f"Job {kind}")).to_be_visible()
    return re.search(r"job=([0-9a-f-]{36})", page.url).group(1)


def test_see_label_train_promote_and_roll_back(gateway, jobs_here, dashboard_of, tab, engine):
    shares = rated_traffic(gateway)
    restart(gateway, gateway.greedy)
    default = gateway.config.router.default
    family, best = badly_served(shares, default)
    asked = next(task for task in tasks(SEED, "validation") if task.family == family)
    answer = gateway.chat(asked.prompt)
    assert answer.headers["x-pointsman-worker"] == default
    decision = answer.headers["x-pointsman-decision-id"]
    gateway.record(answer)

    url = dashboard_of(gateway)
    tab.goto(f"{url}/decisions?decision={decision}")
    expect(tab.get_by_role("heading", name="Decision", exact=True)).to_be_visible()
    expect(tab.get_by_text(asked.prompt, exact=True).first).to_be_visible()

    with engine.begin() as connection:
        add_items(connection, Actor("sys", "admin"), PROJECT, "random", [(decision, 0.5)], datetime.now(UTC))
    (item,) = open_items(engine, PROJECT)
    tab.goto(f"{url}/review?item={item.id}")
    choose(tab, "A better worker", best)
    expect(tab.get_by_role("button", name="Underpowered")).to_be_visible()
    tab.get_by_role("button", name="Underpowered").click()
    expect(tab.get_by_text("It is feedback now.")).to_be_visible()
    (verdict,) = verdicts(engine, PROJECT)
    assert (verdict.verdict, verdict.better_worker) == ("underpowered", best) and verdict.feedback_id
    gateway.ship()

    def toy_labels():
        tab.get_by_text("Toy", exact=True).click()
        choose(tab, "Encoder", "text")

    job = start_job(tab, url, "labels", toy_labels)
    made = jobs_here(job)
    assert made.state == "done", made.reason
    expect(tab.get_by_test_id("stMetricValue").first).to_have_text("done")  # the page looks again by itself

    def of_these():
        tab.get_by_label("Labels", exact=True).fill(made.result["label_set"])
        choose(tab, "Method", "clusters")

    trained = jobs_here(start_job(tab, url, "train", of_these))
    assert trained.state == "done", trained.reason
    params = {"labels": made.result["label_set"], "method": "clusters", "seed": 2}
    other = jobs_here(Jobs(engine).start("train", params, project_id=PROJECT, asked_by="ana").id)
    tab.goto(f"{url}/jobs?job={trained.id}&with={other.id}")
    expect(tab.get_by_role("heading", name="Two runs")).to_be_visible()
    differing = tab.locator("[data-testid^=glide-cell]", has_text=re.compile("^seed$"))
    expect(differing.first).to_be_attached()

    version = trained.result["router_version"]
    tab.goto(f"{url}/routers?router={version}")
    tab.get_by_label("Why", exact=True).fill("better labels")
    tab.get_by_text("Promote without a certificate").click()
    tab.get_by_role("button", name="Promote", exact=True).click()
    expect(tab.get_by_text("serves from now on.")).to_be_visible()
    gateway.refresh()
    again = gateway.chat(asked.prompt)
    assert version in again.headers["x-pointsman-router"]
    assert again.headers["x-pointsman-worker"] != default

    tab.get_by_label("Why roll back").fill("only a rehearsal")
    tab.get_by_role("button", name="Roll back").click()
    expect(tab.get_by_test_id("stAlertContentSuccess")).to_contain_text(
        "Rolled back: the routers of the file serve again."
    )
    gateway.refresh()
    assert gateway.chat(asked.prompt).headers["x-pointsman-worker"] == default


def test_two_browsers_label_one_item(served, log, engine, browser_page):
    with engine.begin() as connection:
        add_items(
            connection, Actor("sys", "admin"), log.project, "random", [(log.decisions[5]["id"], 0.5)], datetime.now(UTC)
        )
    (item,) = open_items(engine, log.project)
    first, second = browser_page(), browser_page()
    first.goto(f"{served}/review?item={item.id}")
    expect(first.get_by_role("button", name="Good fit")).to_be_visible()
    second.goto(f"{served}/review?item={item.id}")
    expect(second.get_by_text(re.compile("has this item open until"))).to_be_visible()
    expect(second.get_by_role("button", name="Good fit")).to_have_count(0)
    first.keyboard.press("1")
    expect(first.get_by_text("Verdict kept: good fit.", exact=False)).to_be_visible()
    second.reload()
    expect(second.get_by_text(re.compile("this item is done: .* said good fit"))).to_be_visible()
    assert len(verdicts(engine, log.project)) == 1
