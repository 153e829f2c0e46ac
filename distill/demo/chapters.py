"""The story, chapter by chapter. Each tells what happened in figures, with intervals, and hands on what it found."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from distill.demo.measure import Floats, HeldOut, ask_held_out, difference, picks
from distill.demo.stage import Stage
from pointsman.actions.actor import Actor
from pointsman.actions.routers import promote
from pointsman.errors import UserError
from pointsman.flywheel.job import start
from pointsman.flywheel.store import Turn, turn_of
from pointsman.promotion.serving import newest_promotion

Tell = Callable[[str], None]
DEMO = Actor("demo", "operator")
HELD_OUT, PROBES, BATCH = 500, 650, 150
TURN_SECONDS = 900.0


@dataclass
class Story:
    """What has been found so far. `earned` are rewards per held-out request, by router."""

    stage: Stage
    tell: Tell
    held_out: HeldOut | None = None
    earned: dict[str, Floats] = field(default_factory=dict)
    figures: dict[str, Any] = field(default_factory=dict)
    learned: str | None = None

    @property
    def rows(self) -> HeldOut:
        assert self.held_out is not None
        return self.held_out


def poor_cards(story: Story) -> None:
    """The cards say nothing, so the prompted router guesses."""
    story.held_out = ask_held_out(story.stage, HELD_OUT)
    rows = story.rows
    story.earned["prompted"] = rows.earned(picks(story.stage, rows.texts))
    story.figures |= {"prompted": _mean(story, "prompted"), "oracle": round(rows.oracle, 4)}
    story.tell(
        f"the prompted router with these cards earns {_mean(story, 'prompted'):.3f} on {len(rows.texts)} held-out "
        f"requests; the best single worker {rows.best_single:.3f}, the best choice every time {rows.oracle:.3f}"
    )


def traffic(story: Story) -> None:
    """People ask, and some say how the answer was."""
    report = story.stage.drive(BATCH)
    low, high = report.interval or (0.0, 1.0)
    story.tell(
        f"{report.ok} of {report.requests} requests were answered; {report.correct:.3f} rightly [{low:.3f}, {high:.3f}]"
    )


def better_cards(story: Story) -> None:
    """Every worker answers tasks with verifiers; from what each won and lost cards are written, and certified."""
    stage = story.stage
    file = stage.write_tasks("probes.jsonl", "train", PROBES)
    stage.driven = max(stage.driven, PROBES)  # traffic goes on with requests that no probe has asked
    asked = stage.job("probe", {"file": file, "concurrency": 16})
    story.tell(f"all workers answered {PROBES} tasks: {asked.state}")
    job = stage.job("optimize", {"origins": ["probe"], "calls": 800, "promote_as_candidate": True, "seed": stage.seed})
    version = (job.result or {}).get("router_version")
    if job.state != "done" or version is None:
        story.tell(
            f"the search for cards left no candidate: {job.reason or (job.result or {}).get('not_certified_because')}"
        )
        story.earned["optimised"] = story.earned["prompted"]
    else:
        story.earned["optimised"] = story.rows.earned(picks(stage, story.rows.texts, stage.known(version)))
        try:
            with stage.engine.begin() as connection:
                promote(connection, DEMO, stage.project, version, datetime.now(UTC), reason="its certificate")
            story.tell(f"router version {version[:8]} has better cards and a certificate that says so: it serves")
        except UserError as error:
            story.tell(f"not promoted: {error}")
    story.figures["optimised"] = _mean(story, "optimised")
    story.tell(f"with these cards {_mean(story, 'optimised'):.3f} {_over(story, 'optimised', 'prompted')} over before")


def first_turn(story: Story) -> None:
    """The flywheel: labels of the log, routers of the labels, the gate."""
    turn = _turn(story)
    story.learned = _learned(turn)
    candidate = turn.candidate_id or story.learned
    if candidate is not None:
        story.earned["learned"] = story.rows.earned(picks(story.stage, story.rows.texts, story.stage.known(candidate)))
        low, high = difference(story.earned["learned"], story.earned["prompted"])[1:]
        story.figures |= {
            "learned": _mean(story, "learned"),
            "learned_vs_prompted_interval": [round(low, 4), round(high, 4)],
        }
        story.tell(
            f"the router of this turn earns {_mean(story, 'learned'):.3f}: {_over(story, 'learned', 'prompted')} over "
            f"the first cards, {_over(story, 'learned', 'optimised')} over the better ones"
        )
    for head, version in turn.facts.get("learned", {}).items():
        earned = story.rows.earned(picks(story.stage, story.rows.texts, story.stage.known(version)))
        story.figures[f"learned_{head}_head"] = round(float(earned.mean()), 4)
        story.tell(f"  a language model with {head} head earns {earned.mean():.3f}")
    story.tell("  (held-out requests ask wordings that no traffic has; the gate saw the traffic's)")
    story.figures["promoted"] = turn.state == "promoted"


def a_worker_leaves(story: Story) -> None:
    """The worker that is chosen most is gone; its traffic moves, and the next turn learns without it."""
    stage, rows = story.stage, story.rows
    default = stage.config.router.default
    chosen = Counter(name for name in picks(stage, rows.texts) if name != default)
    if not chosen:
        story.tell("everything goes to the default worker; there is nobody to take away")
        return
    gone = chosen.most_common(1)[0][0]
    stage.remove_worker(gone)
    left = rows.without(gone)
    after = left.earned(picks(stage, left.texts))
    story.tell(
        f"{gone}, chosen for {chosen[gone]} of {len(rows.texts)}, leaves; then {float(after.mean()):.3f} is earned"
    )
    turn = _turn(story, force=True)
    now = left.earned(picks(stage, left.texts))
    refit = turn.candidate_id or _learned(turn)
    best = left.earned(picks(stage, left.texts, stage.known(refit))) if refit else now
    regret = max(0.0, float(best.mean() - now.mean()))
    story.figures |= {
        "after_removal": round(float(after.mean()), 4), "after_next_turn": round(float(now.mean()), 4),
        "refitted": round(float(best.mean()), 4), "recovery_regret": round(regret, 4),
    }  # fmt: skip
    mean, low, high = difference(now, after)
    story.tell(
        f"after the next turn {float(now.mean()):.3f} ({mean:+.3f} [{low:+.3f}, {high:+.3f}]); a router trained "
        f"without it would earn {float(best.mean()):.3f}: regret {regret:.3f}"
    )


def the_log(story: Story) -> None:
    """Every request that was answered is a row."""
    logged = story.stage.logged()
    story.figures["rows_lost"] = story.stage.sent - logged
    story.tell(f"{story.stage.sent} requests were answered, {logged} are in the log")


def _learned(turn: Turn) -> str | None:
    """The version with the card head, which a new worker's card is enough for."""
    made: dict[str, str] = turn.facts.get("learned", {})
    return made.get("card")


def _turn(story: Story, *, force: bool = False) -> Turn:
    """Opens a turn and sends traffic until it has ended."""
    stage, seen = story.stage, 0
    with stage.engine.begin() as connection:
        turn = start(connection, stage.project, stage.config, DEMO.name, datetime.now(UTC), force=force)
        if not isinstance(turn, Turn):
            raise UserError(f"no turn was opened: {turn.why}")
    story.tell(f"a turn begins: {turn.opened_because}")
    until = time.monotonic() + TURN_SECONDS
    while turn.ended_at is None and time.monotonic() < until:
        if turn.links and turn.links[-1].name in ("shadow", "canary"):
            stage.drive(BATCH)
        else:
            time.sleep(0.5)
        with stage.engine.connect() as connection:
            turn = turn_of(connection, stage.project, turn.id)
        for link in turn.links[seen:]:
            if link.state == "running":
                break
            seen += 1
            story.tell(f"  {link.name}: {link.state}{f' ({link.reason})' if link.reason else ''}")
    story.tell(f"the turn is {turn.state}{f': {turn.reason}' if turn.reason else ''}")
    with stage.engine.connect() as connection:
        serving = newest_promotion(connection, stage.project)
    story.tell(f"what serves: {serving.version if serving and serving.version else 'the routers of the file'}")
    return turn


def _mean(story: Story, name: str) -> float:
    return round(float(story.earned[name].mean()), 4)


def _over(story: Story, new: str, old: str) -> str:
    mean, low, high = difference(story.earned[new], story.earned[old])
    return f"{mean:+.3f} [{low:+.3f}, {high:+.3f}]"
