"""The content of Responses items as the content of chat messages: texts, images, files, sounds.

A single text becomes a plain string, which every worker takes. Files by id or address are refused:
nothing is held here under an id, and workers' chat APIs take a file only with its data.
"""

from __future__ import annotations

from typing import Any

from harness.gateway.surfaces.responses_checks import required_text, wrong
from pointsman.errors import RequestError

Part = dict[str, Any]

_TEXTS = ("input_text", "output_text", "text", "summary_text")


def chat_content(content: Any, path: str) -> str | list[Part]:
    """A message's content: a text, or a list of parts."""
    if isinstance(content, str):
        return content
    return flattened(chat_parts(content, path))


def chat_parts(content: Any, path: str) -> list[Part]:
    if not isinstance(content, list):
        raise wrong(path, "a text or a list of parts")
    return [_part(part, f"{path}[{index}]") for index, part in enumerate(content)]


def flattened(parts: list[Part]) -> str | list[Part]:
    """One text alone as a string, nothing at all as an empty one."""
    if not parts:
        return ""
    if len(parts) == 1 and parts[0]["type"] == "text":
        text: str = parts[0]["text"]
        return text
    return parts


def _part(part: Any, path: str) -> Part:
    if not isinstance(part, dict):
        raise wrong(path, "an object")
    kind = part.get("type")
    if kind in _TEXTS:
        text = part.get("text")
        if not isinstance(text, str):
            raise wrong(f"{path}.text", "a text")
        return {"type": "text", "text": text}
    if kind == "refusal":
        return {"type": "refusal", "refusal": required_text(part.get("refusal"), f"{path}.refusal")}
    if kind == "input_image":
        return _image(part, path)
    if kind == "input_file":
        return _file(part, path)
    if kind == "input_audio":
        if not isinstance(part.get("input_audio"), dict):
            raise wrong(f"{path}.input_audio", "an object with data and format")
        return {"type": "input_audio", "input_audio": part["input_audio"]}
    known = "input_text, input_image, input_file, input_audio, output_text, refusal"
    raise wrong(f"{path}.type", f"one of {known}")


def _image(part: Part, path: str) -> Part:
    if part.get("file_id"):
        raise _not_held(f"{path}.file_id", "give the image as an address or data URL in image_url")
    image = {"url": required_text(part.get("image_url"), f"{path}.image_url")}
    if (detail := part.get("detail")) is not None:
        image["detail"] = required_text(detail, f"{path}.detail")
    return {"type": "image_url", "image_url": image}


def _file(part: Part, path: str) -> Part:
    for name in ("file_id", "file_url"):
        if part.get(name):
            raise _not_held(f"{path}.{name}", "give the file's data in file_data")
    file = {"file_data": required_text(part.get("file_data"), f"{path}.file_data")}
    if (filename := part.get("filename")) is not None:
        file["filename"] = required_text(filename, f"{path}.filename")
    return {"type": "file", "file": file}


def _not_held(path: str, instead: str) -> RequestError:
    return RequestError(f"{path}: no files are held here; {instead}", param=path, code="unsupported_parameter")
