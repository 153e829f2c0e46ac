"""`pointsman.toml`: what it may say (`model`), reading it (`load`), where things live (`home`), writing one (`write`)."""

from pointsman.config.home import Settings
from pointsman.config.load import load_config, load_text
from pointsman.config.model import Config, WorkerConfig

__all__ = ["Config", "Settings", "WorkerConfig", "load_config", "load_text"]
