"""What a search reports: candidates and their lineage, what it spent, the winner, the certificate.

Validation scores stand here as what they are, the scores of a contest; the certificate's are the only ones that speak
of quality.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from harness.optimise.budget import Spending
from harness.optimise.candidate import Candidate
from harness.optimise.certify import Certificate
from harness.optimise.rows import Splits
from harness.optimise.search import Found

Verdict = Literal["certified", "not_certified", "uncertified", "nothing_better"]
NOT_QUALITY = "validation scores chose the winner and are too high for it; they are no measure of quality"


@dataclass(frozen=True)
class Report:
    """One search from beginning to end.

    `certified`: shown to be better. `not_certified`: the certificate could not show it. `uncertified`: it looks better,
    and no certification set was opened. `nothing_better`: the search itself found nothing, and opened none.
    """

    found: Found
    splits: Splits
    spent: Spending
    certificate: Certificate | None
    certification: Spending
    fallbacks: float

    @property
    def verdict(self) -> Verdict:
        if not self.found.better:
            return "nothing_better"
        if self.certificate is None:
            return "uncertified"
        return "certified" if self.certificate.better else "not_certified"

    @property
    def winner(self) -> Candidate:
        return self.found.winner

    def as_dict(self) -> dict[str, Any]:
        """As JSON."""
        splits = self.splits
        return {
            "verdict": self.verdict,
            "winner": described(self.winner),
            "start": self.found.start.id,
            "rows": {
                "train": len(splits.train),
                "validation": len(splits.validation),
                "certification": len(splits.certification),
                "certification_left_out_as_seen": splits.repeated,
                "basis": splits.train.basis,
            },
            "search": {**self.spent.as_dict(), "stopped_by": self.found.stopped},
            "certification": self.certification.as_dict(),
            "certificate": self.certificate.as_dict() if self.certificate else None,
            "unusable_replies": round(self.fallbacks, 4),
            "finalists": [
                {
                    "id": one.candidate.id,
                    "origin": one.candidate.origin,
                    "place": one.place,
                    "validation_score_not_quality": round(one.mean, 4),
                    "validation_rows": one.rows,
                }
                for one in self.found.standings
            ],
            "note": NOT_QUALITY,
            "lineage": [{"id": c.id, "parent": c.parent, "origin": c.origin} for c in self.found.candidates],
        }


def described(candidate: Candidate) -> dict[str, Any]:
    """A candidate with its texts and where it came from."""
    return {"id": candidate.id, "parent": candidate.parent, "origin": candidate.origin, **candidate.config}
