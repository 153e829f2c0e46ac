"""docs/jobs.md, made from the closed list of job kinds: what each does, its stages, its parameters.

python -m pointsman.jobs.reference
"""

from __future__ import annotations

import sys

import msgspec

from pointsman.jobs.kind import JobKind
from pointsman.jobs.kinds import KINDS
from pointsman.jobs.params import Option, options

_HEAD = """# Jobs: every kind, every parameter

Made from the code by `make docs`. A job is started by a command (`pointsman probe --job`), by
`pointsman jobs start KIND --set NAME=VALUE`, by `POST /v1/jobs`, in the dashboard, or by a schedule:

```toml
[schedules.nightly]
kind = "retention"
cron = "0 3 * * *"
```

Queues say which workers may run it (`pointsman worker --queues`). A stage that is done is not done again, whatever is
killed meanwhile. [howto/](howto/) tells what the jobs are for.
"""


def markdown() -> str:
    """The whole page."""
    return "\n".join([_HEAD, *(_kind(kind) for kind in KINDS.values())])


def _kind(kind: JobKind) -> str:
    extra = f" Needs `pip install 'pointsman[{kind.extra}]'`." if kind.extra else ""
    stages = " → ".join(f"`{stage}`" for stage in kind.stages)
    lines = [
        f"## `{kind.name}`\n",
        f"{kind.summary[:1].upper()}{kind.summary[1:]}.{extra}\n",
        f"Queue `{kind.queue}`; stages {stages}.\n",
    ]
    found = options(kind.params)
    if not found:
        return "\n".join([*lines, "It has no parameters.\n"])
    lines += ["| parameter | type | default | meaning |", "|---|---|---|---|"]
    lines += [_option(option) for option in found]
    return "\n".join([*lines, ""])


def _option(option: Option) -> str:
    default = "**needed**" if option.required else f"`{msgspec.json.encode(option.default, enc_hook=str).decode()}`"
    return f"| `{option.name}` | {option.type} | {default} | {option.help} |".replace("\n", " ")


if __name__ == "__main__":
    sys.stdout.write(markdown())
