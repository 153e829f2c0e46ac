"""Pictures of the dashboard for the README, from a small seeded log: `make screenshots`.

Each page at 1280 pixels in light and dark, and the overview at 390. What they show is a simulation.

Run: python benchmarks/screenshots.py [--to docs/images]
"""

from __future__ import annotations

import argparse
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pages.browser import chromium, settled
from pages.seed import seed
from pages.server import served
from PIL import Image

from pointsman.actions.actor import Actor
from pointsman.actions.review import Judgement, add_items, give_verdict
from pointsman.database.embedded import embedded
from pointsman.database.engine import make_engine
from pointsman.database.schema import migrate
from pointsman.queries import DecisionFilter, decisions_page
from pointsman.queries.reviews import open_items
from pointsman.queries.worth import worth_reviewing
from pointsman.rollups.fill import refresh

ROOT = Path(__file__).parents[1]
ROWS = 6_000
SETTLE = 5_000  # milliseconds: charts draw themselves after the script has ended
COLOURS = 96
PAGES = ("overview", "decisions", "episodes", "review", "workers", "routers", "jobs", "data")


def shots(decision: str, item: str, episode: str) -> list[tuple[str, str, str, int, int]]:
    """(name, path, colour scheme, width, height)."""
    wide = [(name, "" if name == "overview" else name, "light", 1280, 1500) for name in PAGES]
    return [
        *wide,
        ("overview-dark", "", "dark", 1280, 1500),
        ("overview-narrow", "", "light", 390, 1600),
        ("decision", f"decisions?decision={decision}", "light", 1280, 1700),
        ("decision-dark", f"decisions?decision={decision}", "dark", 1280, 1700),
        ("decision-narrow", f"decisions?decision={decision}", "dark", 390, 1600),
        ("review-item", f"review?item={item}", "light", 1280, 1300),
        ("episode", f"episodes?episode={episode}", "light", 1280, 1300),
    ]


def prepare(engine: Any, url: str) -> tuple[str, str, str]:
    """A log with some verdicts; ids of a decision, an item to judge, an episode."""
    project, now = seed(engine, url, ROWS, 1), datetime.now(UTC)
    refresh(engine, now)
    ana, ben = Actor("ana", "reviewer"), Actor("ben", "reviewer")
    since = now - timedelta(days=60)
    with engine.begin() as connection:
        for rule in ("random", "bad_outcome"):
            found = worth_reviewing(engine, project, rule, since, 12)
            add_items(connection, ana, project, rule, found, now, wanted=2)
    words = ("good_fit", "underpowered", "good_fit", "failed")
    for number, item in enumerate(open_items(engine, project)[:8]):
        for who in (ana, ben):
            said = words[(number + (who is ben and number % 4 == 3)) % 4]
            with engine.begin() as connection:
                give_verdict(connection, who, project, str(item.id), Judgement(said), "token", now)
    newest = decisions_page(engine, project, DecisionFilter(), limit=1).rows[0]
    return newest.id, str(open_items(engine, project)[0].id), str(newest.episode_id)


def small(file: Path) -> None:
    """A palette of few colours: a third of the size, and no difference that a reader sees."""
    picture = Image.open(file).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    picture.save(file, optimize=True)


def take(browser: Any, address: str, shot: tuple[str, str, str, int, int], folder: Path) -> None:
    name, path, scheme, width, height = shot
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    page.set_default_timeout(120_000)
    page.goto(f"{address}/{path}")
    page.get_by_role("heading", level=1).first.wait_for()
    settled(page)
    page.wait_for_function("document.querySelectorAll('[data-testid=stSkeleton]').length === 0")
    page.wait_for_timeout(SETTLE)
    file = folder / f"{name}.png"
    page.screenshot(path=str(file))
    page.close()
    small(file)
    print(f"{file}  {file.stat().st_size / 1000:.0f} kB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=Path, default=ROOT / "docs" / "images")
    parser.add_argument("--only", nargs="*", help="names of pictures; absent: all")
    arguments = parser.parse_args()
    arguments.to.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="pointsman-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        home.chmod(0o755)
        with embedded(home) as url:
            migrate(url)
            engine = make_engine(url, application="pointsman-screenshots")
            names = prepare(engine, url)
            engine.dispose()
            with served(home, url) as (address, _), chromium() as browser:
                for shot in shots(*names):
                    if not arguments.only or shot[0] in arguments.only:
                        take(browser, address, shot, arguments.to)


if __name__ == "__main__":
    main()
