"""A search's result in plain lines, for a terminal and a job's log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_VERDICTS = {
    "certified": "A better set was found and certified.",
    "not_certified": "A set that looked better was found; the certification rows could not show that it is.",
    "uncertified": "A set that looks better was found. It is not certified.",
    "nothing_better": "Nothing was found that looks better: the present cards stay.",
}


def lines(result: Mapping[str, Any]) -> list[str]:
    """The verdict, what it rests on, the cards, what it took. No validation score is among them."""
    winner, certificate = result["winner"], result["certificate"]
    told = [_VERDICTS[result["verdict"]]]
    if result.get("not_certified_because"):
        told.append(f"  why not: {result['not_certified_because']}")
    if certificate:
        told += [f"  {one['claim']}: {one['said']}  [α = {one['alpha']:.4g}]" for one in certificate["statements"]]
        told.append(f"  on {certificate['rows']} rows of {certificate['episodes']} episodes that the search never saw")
        told.append(_beside(certificate["beside"]))
    if result["verdict"] != "nothing_better":
        told.append(f"Winner {winner['id']} ({winner['origin']}), from {result['start']}:")
        told += [f"  {name}: {card}" for name, card in winner["cards"].items()]
    if result.get("router_version"):
        told.append(f"Written as the candidate {result['router_version']}; it does not serve by itself.")
    return [*told, *_took(result)]


def _beside(beside: Mapping[str, Any]) -> str:
    told = f"{beside['difference']:+.4f} [{beside['low']:+.4f}, {beside['high']:+.4f}]"
    if beside["low"] > 0:
        return f"  beside sending everything to {beside['worker']}, for information: {told}"
    return f"  WARNING: not shown to be better than sending everything to {beside['worker']}: {told}"


def _took(result: Mapping[str, Any]) -> list[str]:
    search, rows = result["search"], result["rows"]
    tried = len(result["lineage"])
    told = [
        f"{tried} candidates; {search['router_calls']} router calls, {search['reflection_calls']} of reflection, "
        f"${search['money_usd']}; {result['certification']['router_calls']} calls to certify",
        f"rows: {rows['train']} train, {rows['validation']} validation, {rows['certification']} certification",
    ]
    if search["stopped_by"]:
        told.append(f"stopped by the limit on {search['stopped_by']}")
    told += [f"left out: {count} rows ({reason})" for reason, count in result["rows_left_out"].items()]
    if result["unusable_replies"]:
        told.append(f"{result['unusable_replies']:.1%} of the router's replies could not be used")
    return told
