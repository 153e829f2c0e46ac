"""Classic routers as numpy: what `distill.classic` trained with scikit-learn, read back and computed.

A model is a folder of two files. `router.json` says what it is:

    {"format": 1, "kind": "classic", "method": "mixture", "text": {"bits": 14, "max_chars": 600},
     "arms": [{"endpoint": "<hash>", "worker": "small"}, ...], "settings": {}, "tensors": "<sha256>"}

and `router.safetensors` holds its numbers, by method:

| method | tensors | scores |
|---|---|---|
| constant | means [k] | the same for every text |
| random | none | uniforms of the request's seed |
| linear, logistic | idf [b], weight [b, k], bias [k] | x W + b; of logistic its sigmoid |
| mixture | idf, weight [b, t], bias [t], values [t, k] | softmax(x W + b) V |
| clusters | idf, projection, groups [g + 1], centroids [c, d], halves [c], residuals [c, k], base [k] | see below |
| neighbours | idf, projection [b, d], train [n, d], rewards [n, k] | mean of the nearest by cosine |

x are the text's hashed TF-IDF values; b buckets, k arms in the order of `arms`. All in float64 but `train`.
Clusters score base + Σ over groups of the nearest centroid's residual; group i is the centroids groups[i] to
groups[i + 1], halves are |centroid|² / 2.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import msgspec

from harness.routing.hashed_text import HashedText, tf_idf
from pointsman.errors import UserError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

Method = Literal["constant", "random", "linear", "logistic", "mixture", "clusters", "neighbours"]
FORMAT = 1
JSON_FILE, TENSOR_FILE = "router.json", "router.safetensors"
_NEEDED: Mapping[Method, tuple[str, ...]] = {
    "constant": ("means",),
    "random": (),
    "linear": ("idf", "weight", "bias"),
    "logistic": ("idf", "weight", "bias"),
    "mixture": ("idf", "weight", "bias", "values"),
    "clusters": ("idf", "projection", "groups", "centroids", "halves", "residuals", "base"),
    "neighbours": ("idf", "projection", "train", "rewards"),
}


class ArmEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One column: the endpoint version it belongs to; the worker's name is for people."""

    endpoint: str
    worker: str


class TextEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    bits: int
    max_chars: int


class ModelEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`router.json`. `settings`: `neighbours` for that method; whatever else training noted is in `notes`."""

    format: int
    kind: str
    method: Method
    arms: tuple[ArmEntry, ...]
    tensors: str
    text: TextEntry | None = None
    settings: dict[str, int] = {}
    notes: dict[str, Any] = {}


@dataclass(frozen=True, eq=False)
class ClassicModel:
    """A model in memory. `scores` gives one number per arm, larger is better."""

    method: Method
    endpoints: tuple[str, ...]
    tensors: Mapping[str, Array]
    text: HashedText = field(default_factory=HashedText)
    settings: Mapping[str, int] = field(default_factory=dict)

    def scores(self, text: str, seed: int) -> Array:
        if self.method == "constant":
            return self.tensors["means"]
        if self.method == "random":
            return _uniforms(seed, len(self.endpoints))
        buckets, counts = self.text.counts(text)
        values = tf_idf(counts, self.tensors["idf"][buckets])
        match self.method:
            case "clusters":
                return _nearest_clusters(self._projected(buckets, values), self.tensors)
            case "neighbours":
                return _neighbours(self._projected(buckets, values), self.tensors, self.settings["neighbours"])
        return self._linear(values @ self.tensors["weight"][buckets] + self.tensors["bias"])

    def _linear(self, result: Array) -> Array:
        import numpy as np

        if self.method == "linear":
            return result
        if self.method == "logistic":
            return 1 / (1 + np.exp(-result))
        shares = np.exp(result - result.max())
        mixed: Array = (shares / shares.sum()) @ self.tensors["values"]
        return mixed

    def _projected(self, buckets: Array, values: Array) -> Array:
        """The text in the model's dense space, scaled to length 1 (0 stays 0)."""
        import numpy as np

        point: Array = values @ self.tensors["projection"][buckets]
        norm = np.sqrt(point @ point)
        return point / norm if norm > 0 else point


def read_model(folder: Path) -> tuple[ClassicModel, dict[str, Any]]:
    """The model of a folder and its `router.json`. Raises `UserError` naming what is wrong with it."""
    file = folder / JSON_FILE
    try:
        content = msgspec.json.decode(file.read_bytes(), type=dict[str, Any])
        raw = (folder / TENSOR_FILE).read_bytes()
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise UserError(f"{file}: not a classic router: {error}") from error
    return model_of(content, raw, str(file)), content


def model_of(content: Mapping[str, Any], raw: bytes, what: str) -> ClassicModel:
    """The model that `router.json` (`content`) and the bytes of its tensors make; `what` names it in errors."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        entry = msgspec.convert(content, ModelEntry)
    except msgspec.ValidationError as error:
        raise UserError(f"{what}: not a classic router: {error}") from error
    if entry.format != FORMAT or entry.kind != "classic":
        raise UserError(f"{what}: expected format {FORMAT} of kind classic, got {entry.format} of {entry.kind}")
    if sha256(raw).hexdigest() != entry.tensors:
        raise UserError(f"{what}: its tensors' bytes are not those that it names; train or copy the router again")
    try:
        tensors = load(raw)
    except SafetensorError as error:
        raise UserError(f"{what}: cannot be read as safetensors ({error})") from error
    text = HashedText(entry.text.bits, entry.text.max_chars) if entry.text else HashedText()
    endpoints = tuple(arm.endpoint for arm in entry.arms)
    model = ClassicModel(entry.method, endpoints, tensors, text, entry.settings)
    _check(model, what)
    return model


def _check(model: ClassicModel, what: str) -> None:
    import numpy as np

    assert set(_NEEDED) == set(get_args(Method))
    if len(set(model.endpoints)) != len(model.endpoints) or not model.endpoints:
        raise UserError(f"{what}: every arm needs an endpoint version of its own")
    missing = [name for name in _NEEDED[model.method] if name not in model.tensors]
    if missing:
        raise UserError(f"{what}: a {model.method} router needs {', '.join(missing)}")
    bad = sorted(name for name, tensor in model.tensors.items() if not np.isfinite(tensor).all())
    if bad:
        raise UserError(f"{what}: not finite: {', '.join(bad)}")
    sizes = {name: tensor.shape[0] for name, tensor in model.tensors.items() if name in ("idf", "weight", "projection")}
    wrong = sorted(name for name, size in sizes.items() if size != model.text.buckets)
    width = model.scores("a text to try the shapes with", 0).shape if not wrong else None
    if width != (len(model.endpoints),):
        raise UserError(f"{what}: shapes do not fit {len(model.endpoints)} arms and {model.text.buckets} buckets")


def _uniforms(seed: int, size: int) -> Array:
    import numpy as np

    rng = random.Random(seed)
    return np.array([rng.random() for _ in range(size)])


def _nearest_clusters(point: Array, tensors: Mapping[str, Array]) -> Array:
    """Base plus the residual of the nearest centroid in each group: |c|²/2 - c·x is least."""
    import numpy as np

    distances = tensors["halves"] - tensors["centroids"] @ point
    groups = tensors["groups"]
    least = np.minimum.reduceat(distances, groups[:-1])
    nearest = np.flatnonzero(distances == np.repeat(least, np.diff(groups)))
    if len(nearest) != len(least):  # equally near ones: the first of each group
        numbers = np.searchsorted(groups, nearest, side="right")
        nearest = nearest[np.unique(numbers, return_index=True)[1]]
    result: Array = tensors["base"] + tensors["residuals"][nearest].sum(axis=0)
    return result


def _neighbours(point: Array, tensors: Mapping[str, Array], count: int) -> Array:
    import numpy as np

    near = tensors["train"] @ point.astype(np.float32)
    chosen = np.argpartition(near, len(near) - count)[len(near) - count :]
    result: Array = tensors["rewards"][chosen].mean(axis=0)
    return result
