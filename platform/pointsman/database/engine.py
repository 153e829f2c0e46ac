"""SQLAlchemy engines, with what every connection of ours must have."""

from __future__ import annotations

from sqlalchemy import Engine, create_engine
from sqlalchemy.engine import make_url

from pointsman.errors import ConfigError


def normalised_url(url: str) -> str:
    """`postgres://` and `postgresql://` as the psycopg 3 dialect; anything else is refused."""
    parsed = make_url(url)
    if parsed.get_backend_name() not in ("postgresql", "postgres"):
        raise ConfigError([f"database.url: expected a postgresql:// address, got {parsed.drivername}://"])
    return parsed.set(drivername="postgresql+psycopg").render_as_string(hide_password=False)


def make_engine(url: str, *, pool_size: int = 2, application: str = "pointsman") -> Engine:
    """A small pool; parameters never stand in error messages; sessions run in UTC."""
    return create_engine(
        normalised_url(url),
        pool_size=pool_size,
        max_overflow=2,
        pool_pre_ping=True,
        hide_parameters=True,
        connect_args={
            "connect_timeout": 3,
            "application_name": application,
            "options": "-c timezone=UTC -c statement_timeout=60000",
        },
    )


def psycopg_url(url: str) -> str:
    """The same address for psycopg itself."""
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
