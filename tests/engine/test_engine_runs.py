"""One run: what is told and logged, draws that repeat, limits that bind the whole tree, one end whatever happens."""

from __future__ import annotations

import asyncio
from collections import Counter
from decimal import Decimal

import pytest

from harness.engine.acts import Act, Call, End, Named, Pick, Policy, Route
from harness.engine.engine import final
from harness.engine.events import CallEnded, CallStarted, Decided, Delta, Done, Failed
from harness.engine.limits import Limits
from harness.engine.log import MemoryLog
from harness.engine.patterns.single import Single
from harness.engine.patterns.trinity import Trinity
from harness.engine.patterns.workflow import Workflow
from harness.engine.workers import CallResult
from harness.routing.eligibility import Eligibility
from harness.routing.exploration import replay
from pointsman.errors import BrokenInvariant, StoreError, UpstreamError
from pointsman.upstream.usage import Usage


class Fan(Policy):
    """All of `keys` at once, each asking one worker; over when all are over, the first the answer."""

    kind = "vote"

    def __init__(self, keys, worker="ada", **call):
        super().__init__()
        self.keys, self.worker, self.options = keys, worker, call

    def next(self, state):
        if all((node := state.get(key)) is not None and node.over for key in self.keys):
            return End(self.answer(state), "all")
        return [self.act(state, key) for key in self.keys]

    def act(self, state, key):
        call = Call([{"role": "user", "content": key}], answers=True, **self.options)
        return Act(key, "route", Named(self.worker), lambda node: call)

    def answer(self, state):
        return next((key for key in self.keys if (node := state.get(key)) and node.status == "done"), None)


async def test_single_is_one_decision_that_is_the_root(team):
    one = team(lambda name, text: f"{name} answers")
    done = await one.run(Single(), one.request("Ask bob, please."))
    assert (done.answer, done.worker, done.reason) == ("bob answers", "bob", "answered")
    (decision,), (call,), (outcome,) = one.log.decisions, one.log.calls, one.log.outcomes
    assert decision["id"] == done.node == outcome["id"] == call["decision_id"]
    assert decision["parent_id"] is None
    assert (decision["kind"], decision["pattern"], decision["origin"]) == ("route", "single", "traffic")
    assert decision["scores"] == {"ada": 0.0, "bob": 1.0, "cyd": 0.0}
    assert decision["eligible"] == {"ada": None, "bob": None, "cyd": None}
    assert call["messages"] is None  # it saw the request's own
    assert (outcome["status"], outcome["worker"], outcome["calls"]) == ("ok", "bob", 1)
    assert [type(event) for event in one.events] == [Decided, CallStarted, CallEnded, Delta, Done]


async def test_the_logged_vector_is_the_one_that_was_drawn_from_and_can_be_drawn_again(team):
    one = team(lambda name, text: name, epsilon=0.4)
    picked = Counter()
    for seed in range(300):
        await one.run(Single(), one.request("bob", seed=seed))
    for decision in one.log.decisions:
        again = replay(decision["scores"], 0.4, decision["draw"])
        assert (again.chosen, again.probabilities) == (decision["chosen"], decision["probabilities"])
        assert decision["propensity"] == decision["probabilities"][decision["chosen"]]
        picked[decision["chosen"]] += 1
    assert picked["bob"] > picked["ada"] > 15


async def test_one_seed_gives_one_tree_whatever_finishes_first(team):
    async def slow_ada(name, text):
        await asyncio.sleep(0.01 if name == "ada" else 0)
        return name

    first, again = team(lambda name, text: name, epsilon=1.0), team(slow_ada, epsilon=1.0)

    class Routed(Fan):
        def act(self, state, key):
            return Act(key, "route", Route(state.request.ask), super().act(state, key).call)

    keys = [f"k{number}" for number in range(8)]
    chosen = []
    for one in (first, again):
        await one.run(Routed(keys), one.request("anything"))
        by_turn = {event.key: event.chosen for event in one.of(Decided)}
        chosen.append([by_turn[key] for key in keys])
    assert chosen[0] == chosen[1]
    assert len(set(chosen[0])) > 1


async def test_an_options_draw_is_logged_with_its_vector(team):
    class Coin(Policy):
        kind = "sidekick"

        def next(self, state):
            node = state.get("coin")
            if node is None:
                return [Act("coin", "delegate", Pick({"self": 0.25, "delegate": 0.75}))]
            return End(None, "tossed") if node.over else ()

        def answer(self, state):
            return None

    one = team()
    for seed in range(200):
        await one.run(Coin(), one.request(seed=seed))
    coins = [row for row in one.log.decisions if row["kind"] == "delegate"]
    assert all(row["probabilities"] == {"delegate": 0.75, "self": 0.25} and row["forced"] is None for row in coins)
    assert 130 < sum(row["chosen"] == "delegate" for row in coins) < 170
    assert {row["propensity"] for row in coins if row["chosen"] == "self"} == {0.25}
    assert all((row["draw"][0] < 0.75) == (row["chosen"] == "delegate") for row in coins)


async def test_every_decision_has_exactly_one_outcome_and_the_roots_counts_the_tree(team, kit):
    one = team(
        lambda name, text: "1", plans=[kit.plan(("ada", "a", "none"), ("bob", "b", "none"), ("cyd", "c", "all"))]
    )
    done = await one.run(Workflow())
    decisions, outcomes = one.log.decisions, one.log.outcomes
    assert sorted(row["id"] for row in decisions) == sorted(row["id"] for row in outcomes)
    root = next(row for row in decisions if row["parent_id"] is None)
    assert (root["kind"], root["chosen"], root["forced"]) == ("pattern", "workflow", "direct")
    total = next(row for row in outcomes if row["id"] == root["id"])
    own = [row for row in outcomes if row["id"] != root["id"]]
    assert total["calls"] == sum(row["calls"] for row in own) == 3
    assert total["cost"] == sum(row["cost"] for row in own) > 0
    assert (total["worker"], total["reason"]) == ("cyd", "planned")
    ids = {row["id"] for row in decisions}
    assert all(row["parent_id"] in ids for row in decisions if row is not root)
    assert done.totals.calls == 3


async def test_the_visible_tokens_are_the_answers_and_all_others_are_orchestration(team, kit):
    def said(name, text):
        usage = Usage(10, 4, 2) if name == "cyd" else Usage(100, 50)
        return CallResult(name, "text", usage=usage, cost=Decimal("0.001"))

    one = team(said, plans=[kit.plan(("ada", "a", "none"), ("cyd", "c", "all"))])
    totals = (await one.run(Workflow())).totals
    assert (totals.visible_input_tokens, totals.visible_output_tokens, totals.visible_cached_tokens) == (10, 4, 2)
    assert totals.orchestration == (100 + 100, 50 + 20)  # the other step, and the conductor
    assert totals.tokens == 110 + 54 + 120
    assert totals.cost == Decimal("0.002")
    assert totals.router_cost == (100 * kit.price.input + 20 * kit.price.output) / 1_000_000


@pytest.mark.parametrize(("limits", "reason", "calls"), [
    (Limits(calls=2), "limit: calls", 2),
    (Limits(tokens=1_000), "limit: tokens", 2),
    (Limits(money=Decimal("0.0012")), "limit: money", 2),
])  # fmt: skip
async def test_a_limit_binds_the_whole_tree_and_the_best_answer_so_far_is_given(team, limits, reason, calls):
    def said(name, text):
        word = "REVISE" if "verifier of a team" in text else "Suggestion: x" if "thinker of a team" in text else "mine"
        return CallResult(name, word, usage=Usage(200, 200), cost=Decimal("0.0005"))

    one = team(said)
    done = await one.run(Trinity(), limits=limits)
    assert (done.answer, done.reason) == ("mine", reason)
    assert len(one.seen) == calls


async def test_calls_under_way_count_against_the_budget(team):
    async def said(name, text):
        await asyncio.sleep(0.02)  # all three are wanted before any is over
        return CallResult(name, "x", usage=Usage(1, 300), cost=Decimal("0.0006"))

    one = team(said)
    done = await one.run(Fan(["a", "b", "c"]), limits=Limits(money=Decimal("0.0013")))
    assert len(one.seen) == 2  # a third, taken to cost 0.0006, would not have fitted beside the two
    assert done.answer == "x"
    assert [row["status"] for row in one.log.outcomes].count("rejected") == 1


async def test_a_worker_without_a_price_counts_as_the_dearest(team, kit):
    pool = kit.pool_of(("ada", "bob"))
    unpriced = pool.workers[1].__class__(**{**pool.workers[1].__dict__, "price": None})
    one = team(lambda name, text: CallResult(name, "x", usage=Usage(100, 1_000), cost=None))
    one.pool = pool.__class__((pool.workers[0], unpriced))
    done = await one.run(Fan(["a"], worker="bob"), limits=Limits(money=Decimal("0.001")))
    assert done.totals.cost is None
    done = await one.run(Fan(["a"], worker="bob"), limits=Limits(money=Decimal("0.0001")))
    assert isinstance(done, Failed) and done.status == "rejected"


async def test_without_any_price_nothing_fits_a_budget(team, kit):
    one = team(lambda name, text: "x", pool=kit.pool_of(price=None))
    done = await one.run(Single(), limits=Limits(money=Decimal(100)))
    assert (type(done), done.reason, one.seen) == (Failed, "limit: money", [])


async def test_the_deadline_ends_a_run_with_what_there_is(team):
    async def said(name, text):
        if "verifier of a team" in text:
            await asyncio.sleep(30)
        return "Suggestion: x" if "thinker of a team" in text else "mine"

    one = team(said)
    until = asyncio.get_running_loop().time() + 0.3
    done = await one.run(Trinity(), limits=Limits(deadline=until))
    assert (done.answer, done.reason) == ("mine", "limit: deadline")
    statuses = Counter(row["status"] for row in one.log.outcomes)
    assert statuses == {"ok": 3, "timeout": 1}


async def test_the_deadline_without_any_answer_is_a_timeout(team):
    async def said(name, text):
        await asyncio.sleep(30)

    one = team(said)
    until = asyncio.get_running_loop().time() + 0.2
    failed = await one.run(Trinity(), limits=Limits(deadline=until))
    assert (type(failed), failed.status, failed.fault.fault) == (Failed, "timeout", "timeout")


async def test_a_failed_worker_fails_a_single_run_with_its_fault(team):
    one = team(lambda name, text: UpstreamError("rate_limited", "too many", retry_after=3))
    failed = await one.run(Single())
    assert (failed.status, failed.fault.fault, failed.fault.message) == ("upstream_error", "rate_limited", "too many")
    assert one.log.outcomes[0]["status"] == "upstream_error"
    assert one.log.calls[0]["fault"] == "rate_limited"


async def test_nobody_eligible_fails_before_any_decision_below_the_root(team):
    one = team(
        lambda name, text: "x", eligible=lambda: Eligibility({"ada": "no_tools", "bob": "budget", "cyd": "excluded"})
    )
    failed = await one.run(Trinity())
    assert (failed.reason, failed.fault.message) == ("no_worker", "no worker may be chosen")
    assert [row["kind"] for row in one.log.decisions] == ["pattern"]
    assert one.log.outcomes[0]["status"] == "upstream_error"


async def test_a_named_worker_that_is_masked_is_never_called(team, kit):
    masked = {"ada": None, "bob": "excluded", "cyd": None}
    one = team(lambda name, text: name, plans=[kit.plan(("bob", "a", "none"))])
    one.eligible = lambda: Eligibility(masked, False, one.pool.named(["ada", "cyd"]))
    done = await one.run(Fan(["a"], worker="bob"))
    assert done.worker == "ada"
    row = next(row for row in one.log.decisions if row["kind"] == "route")
    assert (row["chosen"], row["flags"]) == ("bob", ["masked"])
    assert one.log.outcomes[0]["worker"] == "ada"


async def test_leaving_cancels_all_that_runs_and_logs_it(team):
    running, stopped = [], []

    async def said(name, text):
        running.append(text)
        try:
            await asyncio.sleep(60)
        finally:
            stopped.append(text)

    one = team(said)
    events = one.engine().run(Fan(["a", "b", "c"]), one.request())
    while len(running) < 3:
        await anext(events)
    await events.aclose()
    assert sorted(stopped) == ["a", "b", "c"]
    assert Counter(row["status"] for row in one.log.outcomes) == {"client_cancelled": 4}
    assert all(row["client_closed"] for row in one.log.outcomes)
    assert [row["status"] for row in one.log.calls] == ["cancelled"] * 3


async def test_cancelling_the_reader_cancels_the_run(team):
    stopped = asyncio.Event()

    async def said(name, text):
        try:
            await asyncio.sleep(60)
        finally:
            stopped.set()

    one = team(said)
    task = asyncio.create_task(final(one.engine().run(Single(), one.request())))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert stopped.is_set()
    assert one.log.outcomes[0]["status"] == "client_cancelled"


async def test_what_is_not_needed_any_more_is_stopped(team):
    class First(Fan):
        """The first that is done wins."""

        def next(self, state):
            return End(self.answer(state), "first") if self.answer(state) else super().next(state)

    async def said(name, text):
        await asyncio.sleep(0.02 if text == "b" else 60)
        return text

    one = team(said)
    done = await one.run(First(["a", "b", "c"]))
    assert done.answer == "b"
    reasons = Counter((row["status"], row["reason"]) for row in one.log.outcomes)
    assert reasons == {("truncated", "not needed any more"): 2, ("ok", None): 1, ("ok", "first"): 1}


async def test_a_log_that_takes_nothing_stops_the_run_before_any_call(team):
    class Full(MemoryLog):
        def open(self, decision):
            if decision["kind"] == "role":
                raise StoreError("the journal is full")
            super().open(decision)

    one = team(lambda name, text: "x", log=Full())
    with pytest.raises(StoreError, match="the journal is full"):
        await one.run(Trinity())
    assert one.seen == []
    (outcome,) = one.log.outcomes
    assert (outcome["status"], outcome["reason"]) == ("upstream_error", "a fault in the engine: StoreError")


async def test_nothing_is_told_before_the_log_is_safe(team):
    order = []

    class Slow(MemoryLog):
        async def synced(self):
            order.append(len(self.decisions))
            await asyncio.sleep(0)

    one = team(lambda name, text: "x", log=Slow())
    events = one.engine().run(Single(), one.request())
    first = await anext(events)
    assert isinstance(first, Decided)
    assert order == [1]
    await events.aclose()


async def test_a_pattern_that_neither_begins_nor_ends_is_a_fault_of_ours(team):
    class Stuck(Policy):
        kind = "vote"

        def next(self, state):
            return ()

        def answer(self, state):
            return None

    one = team()
    with pytest.raises(BrokenInvariant, match="the pattern vote neither begins anything nor ends"):
        await one.run(Stuck())


async def test_a_pattern_that_raises_ends_the_run(team):
    class Broken(Fan):
        def read(self, state, node):
            raise ZeroDivisionError

    one = team(lambda name, text: "x")
    with pytest.raises(ZeroDivisionError):
        await one.run(Broken(["a"]))
    assert len(one.log.outcomes) == len(one.log.decisions) == 2


async def test_the_clients_form_goes_only_with_calls_that_may_be_the_answer(team, kit):
    seen = {}

    class Noting:
        async def call(self, worker, messages, *, fields, tools, rows, **rest):
            seen[worker.name] = (dict(fields), list(tools))
            return CallResult(worker.name, "x", cost=Decimal(0))

    tool = {"type": "function", "function": {"name": "look", "parameters": {}}}
    fields = {
        "temperature": 0.3, "response_format": {"type": "json_object"}, "max_tokens": 9, "n": 3, "stream": True,
        "model": "pointsman-ultra", "tools": [tool], "tool_choice": "auto", "seed": 4,
    }  # fmt: skip
    one = team(plans=[kit.plan(("ada", "a", "none"), ("bob", "b", "all"))], workers=Noting())
    await one.run(Workflow(), one.request(fields=fields))
    shared = {"temperature": 0.3, "seed": 4, "tool_choice": "auto"}
    assert seen["ada"] == (shared, [tool])
    assert seen["bob"] == ({**shared, "response_format": {"type": "json_object"}, "max_tokens": 9}, [tool])
