"""The local journal: what makes "accepted" mean "logged".

A gateway process appends lines to its own folder (`writer`), synced to disk before the first byte
reaches a client; a shipper process carries them to Postgres (`shipper`), idempotently by id. Lines
and folders are described in `lines` and `folder`.
"""

from pointsman.journal.writer import Journal

__all__ = ["Journal"]
