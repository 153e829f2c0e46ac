"""Where jobs are run: settings, configuration, database, artifact store, scratch folders. Read once per process."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Engine

from pointsman.config import Config, Settings, load_config
from pointsman.database.engine import make_engine
from pointsman.ids import new_id
from pointsman.jobs.files import ArtifactStore, artifact_store
from pointsman.jobs.lease import LEASE_SECONDS, Claim


@dataclass(frozen=True)
class Workplace:
    """What a worker and its children need. `config` is None where there is no file yet."""

    settings: Settings
    config: Config | None
    database_url: str
    artifacts: str | None = None
    lease_s: float = LEASE_SECONDS

    @classmethod
    def read(cls, settings: Settings, *, database_url: str | None = None, lease_s: float | None = None) -> Workplace:
        """As the configuration says; what is given wins over it. No server is started."""
        config = load_config(settings.config_file) if settings.config_file.exists() else None
        url = database_url or _configured(settings, config)
        if config is None:
            return cls(settings, None, url, None, lease_s or LEASE_SECONDS)
        return cls(settings, config, url, config.jobs.artifacts, lease_s or config.jobs.lease)

    def engine(self, application: str, pool_size: int = 2) -> Engine:
        return make_engine(self.database_url, pool_size=pool_size, application=application)

    def files(self) -> ArtifactStore:
        return artifact_store(self.settings, self.artifacts)

    def folder(self, held: Claim) -> Path:
        """A folder for one attempt at a job, removed when it ends however it ends."""
        return self.settings.home / "jobs" / f"{held.job_id}-{held.fence}"

    def make_folder(self, held: Claim) -> Path:
        """The folder, empty. What earlier attempts on this machine left behind when they were killed goes."""
        folder = self.folder(held)
        for left in folder.parent.glob(f"{held.job_id}-*"):
            shutil.rmtree(left, ignore_errors=True)
        folder.mkdir(parents=True, mode=0o700)
        return folder

    def environment(self) -> Mapping[str, str]:
        """That of a child: ours, with what was set by flags."""
        return {
            **self.settings.environment,
            "POINTSMAN_HOME": str(self.settings.home),
            "POINTSMAN_PORT": str(self.settings.port),
            "POINTSMAN_CONFIG": str(self.settings.config_file),
        }


def _configured(settings: Settings, config: Config | None) -> str:
    from pointsman.database.open import (
        configured_url,
    )  # brings the migrations: half a second that a child need not wait

    return configured_url(settings, config)


def new_owner() -> str:
    """A name for this process in leases: for people its machine and number, and unlike any other."""
    return f"{socket.gethostname()}:{os.getpid()}:{new_id()[-12:]}"
