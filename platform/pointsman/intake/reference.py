"""The table of fields and columns in docs/howto/import.md, made from the built-in maps.

python -m pointsman.intake.reference PAGE
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from pointsman.intake.maps import BUILT_IN, FIELDS, FORMATS

BEGIN, END = "<!-- made by `make docs` -->\n", "<!-- end -->"


def markdown() -> str:
    """A table of fields, then one of each format's columns."""
    lines = ["| field | meaning |", "|---|---|", *(f"| `{name}` | {meaning} |" for name, meaning in FIELDS.items())]
    for form in FORMATS:
        columns = BUILT_IN[form]
        lines += ["", f"`{form}`:", "", "| field | column |", "|---|---|"]
        lines += [
            f"| `{name}` | {', '.join(f'`{path}`' for path in paths)} |" for name, paths in columns.fields.items()
        ]
        if columns.types:
            lines += ["", f"Rows whose `type` is none of {', '.join(sorted(columns.types))} are left out and counted."]
    return "\n".join(lines) + "\n"


def within(page: str) -> str:
    """`page` with the tables between its two marks."""
    return re.sub(rf"{re.escape(BEGIN)}.*?{re.escape(END)}", lambda _: BEGIN + markdown() + END, page, flags=re.DOTALL)


if __name__ == "__main__":
    file = Path(sys.argv[1])
    file.write_text(within(file.read_text(encoding="utf-8")), encoding="utf-8")
