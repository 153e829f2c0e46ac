"""Model files: what may be loaded, what a folder's content hash is, how a file is replaced whole."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from pointsman.errors import UserError
from pointsman.hashing import content_hash

REFUSED = frozenset({".bin", ".pt", ".pth", ".pkl", ".pickle", ".joblib", ".ckpt", ".npy", ".npz"})


def file_hash(file: Path) -> str:
    """SHA-256 of a file's bytes."""
    digest = sha256()
    with file.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def folder_hash(folder: Path) -> str:
    """Of the names and bytes of a folder's safetensors and JSON files: what a model is."""
    files = sorted(file for file in folder.iterdir() if file.suffix in (".safetensors", ".json", ".txt"))
    return content_hash({file.name: file_hash(file) for file in files})


def only_safetensors(folder: Path) -> None:
    """Raises `UserError` where weights of another format stand in for safetensors: loading them can run code."""
    if any(folder.glob("*.safetensors")):
        return
    others = sorted(file.name for file in folder.iterdir() if file.suffix in REFUSED)
    found = f"it has {', '.join(others)}, which can run code when loaded" if others else "it has none"
    raise UserError(f"{folder}: expected weights as .safetensors; {found}")


def save_state(file: Path, arrays: Mapping[str, NDArray[Any]], content: Mapping[str, Any]) -> None:
    """Arrays and JSON in one safetensors file, replaced whole: a checkpoint is never half of one."""
    from safetensors.numpy import save_file

    file.parent.mkdir(parents=True, exist_ok=True)
    waiting = file.with_name(f"{file.name}.{os.getpid()}.new")
    save_file(dict(arrays), waiting, metadata={"content": json.dumps(content)})
    waiting.replace(file)


def load_state(file: Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """What `save_state` wrote. Raises `UserError` where the file is something else."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, "numpy") as stored:
            arrays = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118 (not iterable itself)
            content = json.loads((stored.metadata() or {})["content"])
    except (SafetensorError, KeyError, ValueError) as error:
        raise UserError(f"{file}: not a checkpoint of ours ({error}); delete it to start anew") from error
    return arrays, content


def write_json(file: Path, value: Any) -> None:
    """Replaces `file` whole: a reader sees the old or the new one."""
    waiting = file.with_name(f"{file.name}.{os.getpid()}.new")
    waiting.write_text(json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    waiting.replace(file)


def read_json(file: Path) -> dict[str, Any]:
    """A JSON object. Raises `UserError` where there is none."""
    try:
        value = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise UserError(f"{file}: cannot be read as JSON ({error})") from error
    if not isinstance(value, dict):
        raise UserError(f"{file}: expected a JSON object")
    return value
