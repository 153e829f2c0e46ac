"""`pointsman.toml`: what it may say (`model`), reading it (`load`), its reference, and where things live (`home`)."""

from pointsman.config.home import Settings
from pointsman.config.load import load_config, load_text
from pointsman.config.model import Config, WorkerConfig

__all__ = ["Config", "Settings", "WorkerConfig", "load_config", "load_text"]
