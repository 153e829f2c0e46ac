"""The files in examples/ come in as the pages say."""

from __future__ import annotations

from pathlib import Path

from pointsman.ids import content_id
from pointsman.intake.load import Wish, load
from pointsman.intake.maps import column_map
from pointsman.intake.reading import Source

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_request_log_and_the_score_table(empty_database, tmp_path) -> None:
    def bring(name: str, form: str):
        source = Source(EXAMPLES / name, form, column_map(form))
        return load(empty_database, Wish(source, form, tmp_path / "rejects.jsonl"), content_id("project", "examples"))

    log = bring("requests.jsonl", "openai-jsonl")
    assert (log.rejects.count, dict(log.survey.answers), log.new_rows["episode"]) == (0, {"large": 2, "small": 1}, 2)
    assert {name: number for name, number in log.survey.lacking.items() if number} == {
        "score": 1, "cost": 1, "tokens": 1, "latency_ms": 1,
    }  # fmt: skip
    table = bring("scores.csv", "scores")
    assert (table.rejects.count, table.survey.records, len(table.survey.questions)) == (0, 6, 3)
