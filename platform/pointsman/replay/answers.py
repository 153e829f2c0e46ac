"""What recorded models answered, found by the text of the query.

Everything is held in memory: about 700 bytes per outcome, and the response texts. Query texts are
held as 16-byte digests only. Where two queries have one text, the first that has an outcome of the
model answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from pointsman.replay.models import ModelEntry, read_models
from pointsman.replay.source import Folder, RecordedOutcome


@dataclass(frozen=True, slots=True)
class Answer:
    """One recorded answer. Tokens are None where the data set has none."""

    text: str
    input_tokens: int | None
    output_tokens: int | None


class RecordedAnswers:
    """The answers of one folder: model → query → repeats, in order."""

    def __init__(self, folder: Path) -> None:
        source = Folder(folder)
        digests = {query.id: _digest(query.text) for query in source.queries()}
        numbers = {query_id: number for number, query_id in enumerate(digests)}
        self.queries = len(set(digests.values()))
        self.entries: dict[str, ModelEntry] = read_models(folder)
        self._answers: dict[str, dict[bytes, tuple[str, list[tuple[int, Answer]]]]] = {}
        for outcome in source.outcomes(numbers):
            self._add(digests[outcome.query_id], outcome)
        self.models = sorted(self._answers)

    def find(self, model: str, text: str, repeat: int = 0) -> Answer | None:
        """The answer of `model` to exactly `text`; of several repeats, `repeat` modulo their number."""
        found = self._answers[model].get(_digest(text))
        if found is None:
            return None
        answers = sorted(found[1], key=lambda item: item[0])
        return answers[repeat % len(answers)][1]

    def _add(self, digest: bytes, outcome: RecordedOutcome) -> None:
        by_text = self._answers.setdefault(outcome.model, {})
        query_id, answers = by_text.setdefault(digest, (outcome.query_id, []))
        if query_id == outcome.query_id:
            answers.append((outcome.repeat, _answer(outcome)))


def _answer(outcome: RecordedOutcome) -> Answer:
    text = outcome.response
    if text is None:
        text = f"[recorded score {outcome.score}; the data set has no response text]"
    return Answer(text, outcome.input_tokens, outcome.output_tokens)


def _digest(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]
