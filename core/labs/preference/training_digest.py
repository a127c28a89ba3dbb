"""A few letters that tell what a training was given, so that it is gone on with only where that is the same."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from core.models.loaded_model import LoadedModel

DIGEST_LENGTH = 16


def digest(values: Sequence[object]) -> str:
    """Of plain values, by what they print."""
    return hashlib.sha256(repr(list(values)).encode()).hexdigest()[:DIGEST_LENGTH]


def weights_digest(model: LoadedModel) -> str:
    """Of a model, by its name and one row of each of its matrices."""
    seen = hashlib.sha256(model.name.encode())
    for value in model.model.state_dict().values():
        seen.update(value.reshape(-1)[:64].detach().float().numpy().tobytes())
    return seen.hexdigest()[:DIGEST_LENGTH]
