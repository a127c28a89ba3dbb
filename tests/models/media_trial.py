"""Trial of one audio or image family: a tiny random model, a file of noise, every strategy and every cache."""

from __future__ import annotations

import json
import tempfile
import warnings
from pathlib import Path
from typing import Any

from transformers.models.auto.modeling_auto import (
    MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES,
    MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES,
)

from decodescope import core
from decodescope.core.errors import DecodescopeError
from decodescope.core.models.load_plan import plan_model
from decodescope.core.models.modalities import modalities_of
from tests.core import tiny_media, zoo
from tests.models import trial
from tests.models.trial import LOSSLESS, STRATEGIES, WITH_EVERY_CACHE, judged

_MAKERS = {"vision-encoder-decoder": "captioner", "qwen2_vl": "qwen"}
"""Names of makers that are not those of the model type."""
_TEXT_ALONE = "Decodescope uses this model for text only, without sound or pictures."


def media_kinds() -> list[str]:
    """Model types of transformers that write about sound or pictures."""
    return sorted({*MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES, *MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES})


def try_media(kind: str) -> dict[str, Any]:
    """Return the results of one family as plain values, or why it is not supported."""
    warnings.simplefilter("ignore")
    if not modalities_of({"model_type": kind}).media:
        return {"kind": kind, "skipped": _unsupported_reason(kind)}
    with tempfile.TemporaryDirectory() as folder:
        model = tiny_media.make(_MAKERS.get(kind, kind))
        path = tiny_media.given(_MAKERS.get(kind, kind), Path(folder))
        return _trial_result(kind, model, path)


def _unsupported_reason(kind: str) -> str:
    """Return the error for a folder of that type, without the folder's name."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(json.dumps({"model_type": kind}))
        try:
            plan_model(Path(folder), allow_remote_code=False)
        except DecodescopeError as error:
            if kind not in zoo.names():
                return error.cause.replace(f"{Path(folder).name} (“{kind}”)", "The model")
    return _TEXT_ALONE


def _trial_result(kind: str, model: core.LoadedModel, path: str) -> dict[str, Any]:
    wanted = _references(model, path)

    def cell(strategy: str, cache: str) -> tuple[str, ...]:
        return tuple(judged(model, strategy, cache, wanted, lambda: _written(kind, model, path, strategy, cache)))

    return {
        "kind": kind,
        "class": type(model.model).__name__,
        "encoder_decoder": model.is_encoder_decoder,
        "strategies": {name: cell(name, "dynamic") for name in STRATEGIES},
        "caches": {name: {cache: cell(name, cache) for cache in core.caches.registry} for name in WITH_EVERY_CACHE},
    }


def _settings(given: dict[str, Any]) -> dict[str, Any]:
    return {"max_new_tokens": trial.NEW, "num_beams": 1, "do_sample": False, **given}


def _references(model: core.LoadedModel, path: str) -> dict[str, list[int]]:
    """Return the expected text of each strategy, from the model's own `generate`."""
    greedy = tiny_media.reference(model, path, **_settings({}))[0]
    beams = tiny_media.reference(model, path, **_settings(STRATEGIES["beam_search"]))[0]
    return {**dict.fromkeys(LOSSLESS, greedy), "beam_search": beams}


def _written(kind: str, model: core.LoadedModel, path: str, strategy: str, cache: str) -> list[int]:
    drafters = (model,) if core.strategies.registry[strategy].takes_drafters else ()
    options = {"widths": "2 2"} if strategy == "token_tree" else {}
    prompt = tiny_media.PROMPTS.get(_MAKERS.get(kind, kind), "")
    request = core.Request(
        prompt, _settings(STRATEGIES[strategy]), strategy, options, cache, drafters=drafters, media=(path,)
    )
    return tiny_media.without_end(list(core.run(model, request).sequences[0]))
