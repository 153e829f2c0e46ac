"""What the jobs' benchmarks run on: a Postgres of their own, a broker, homes with workers, and the sandbox to ask.

A trigger notes every claim, every published effect and every end together with its fence, so that afterwards
it can be seen whether a job ever had two holders, and whether anything was published or ended twice.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.jobwork.machine import Board, Home, fresh_board
from benchmarks.jobwork.servers import Broker, RabbitServer, RedisServer, await_port, free_port
from pointsman.database.embedded import EmbeddedPostgres
from pointsman.identity import DEFAULT_PROJECT_ID
from pointsman.sandbox.setup import toml_text

BROKERS = ("embedded", "redis", "rabbitmq")
TASKS, MORE_TASKS = "tasks.jsonl", "more-tasks.jsonl"
LEASE = 5
NOTES = (
    """CREATE TABLE fence_note (at timestamptz NOT NULL DEFAULT clock_timestamp(), job_id uuid NOT NULL,
       fence bigint NOT NULL, before bigint NOT NULL, owner text, effect text)""",
    """CREATE FUNCTION note_fence() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
         IF NEW.fence <> OLD.fence THEN
           INSERT INTO fence_note (job_id, fence, before, owner)
             VALUES (NEW.id, NEW.fence, OLD.fence, NEW.lease_owner);
         END IF;
         INSERT INTO fence_note (job_id, fence, before, owner, effect)
           SELECT NEW.id, NEW.fence, OLD.fence, NEW.lease_owner, key
           FROM jsonb_object_keys(NEW.effects) AS key WHERE NOT OLD.effects ? key;
         IF NEW.state = 'done' AND OLD.state <> 'done' THEN
           INSERT INTO fence_note (job_id, fence, before, owner, effect)
             VALUES (NEW.id, NEW.fence, OLD.fence, NEW.lease_owner, 'done');
         END IF;
         RETURN NULL;
       END $$""",
    """CREATE TRIGGER note_fence AFTER UPDATE ON job FOR EACH ROW
       WHEN (NEW.fence <> OLD.fence OR NEW.effects <> OLD.effects OR NEW.state <> OLD.state)
       EXECUTE FUNCTION note_fence()""",
)


@dataclass
class Scene:
    """One Postgres and one broker; `server` is None for the embedded broker, which workers start themselves."""

    postgres: EmbeddedPostgres
    board: Board
    server: Broker | None
    sandbox_port: int | None
    stack: ExitStack

    def home(self, jobs: str = "") -> Home:
        """A data folder with a configuration, the tasks of the sandbox's world if it runs, and the broker's address."""
        section = f"lease = {LEASE}\nvisibility_timeout = {LEASE}\n{jobs}"
        environment = {}
        if self.server is not None:
            section += '\nbroker_env = "JOBS_BROKER"'
            environment["JOBS_BROKER"] = str(self.server.url)
        config = toml_text(1, self.sandbox_port or 9, "world") + '\n[database]\nurl = "{database}"\n[jobs]\n{jobs}\n'
        home = Home(self.board.url, section, config=_braced(config))
        self.stack.callback(home.close)
        home.environment |= environment
        if self.sandbox_port is not None:
            (home.path / "tasks").mkdir()
            lines = home.command("sandbox", "tasks", "--n", "24").stdout.splitlines(keepends=True)
            (home.path / "tasks" / MORE_TASKS).write_text("".join(lines))
            (home.path / "tasks" / TASKS).write_text("".join(lines[:6]))
        return home


def _braced(config: str) -> str:
    """The text as a template whose only fields are `database` and `jobs`."""
    whole = config.replace("{", "{{").replace("}", "}}")
    return whole.replace("{{database}}", "{database}").replace("{{jobs}}", "{jobs}")


@contextmanager
def scene(broker: str, *, notes: bool = True, sandbox: bool = True) -> Iterator[Scene]:
    """Everything but workers, for the length of the block. `broker` is one of `BROKERS`."""
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="pm-jobs-pg-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        folder.chmod(0o755)  # as root the server runs under another account
        postgres = EmbeddedPostgres(folder)
        stack.callback(postgres.stop)
        postgres.start()
        board = fresh_board(postgres.url, DEFAULT_PROJECT_ID)
        stack.callback(board.close)
        for statement in NOTES if notes else ():
            board.sql(statement)
        server: Broker | None = None
        if broker != "embedded":
            server = RedisServer() if broker == "redis" else RabbitServer()
            stack.callback(server.close)
        yield Scene(postgres, board, server, _sandbox(stack, folder) if sandbox else None, stack)


def _sandbox(stack: ExitStack, folder: Path) -> int:
    """The sandbox's workers as a process; its port."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "pointsman.commands", "sandbox", "serve", "--port", str(port)],
        env={**os.environ, "POINTSMAN_HOME": str(folder / "sandbox")},
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    stack.callback(process.wait)
    stack.callback(process.terminate)
    await_port(port, process)
    return port
