"""Orders of samplers in calls of the server, beside llama.cpp itself: the probabilities after all samplers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from decodescope import core
from decodescope.core.events import TokenChosen
from decodescope.core.server.openai_api import ServedModel, parse_call
from tests.core import gguf_models
from tests.llama_cpp_server import IS_INSTALLED, LlamaCppServer

NAMES = ("penalties", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "temperature")
FIELDS = {
    "temperature": 0.7, "top_k": 20, "top_p": 0.8, "min_p": 0.08, "typical_p": 0.9, "top_n_sigma": 1.5,
    "repeat_penalty": 1.3,
}  # fmt: skip
LISTED = gguf_models.SHAPE["vocab_size"]
TOLERANCE = 2e-3
"""llama.cpp's cache has 16 bits."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not IS_INSTALLED, reason="xllamacpp (llama.cpp's server) is missing"),
]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return gguf_models.save(
        "llama", gguf_models.make("llama"), tmp_path_factory.mktemp("samplers") / "tiny.gguf", "F32"
    )


@pytest.fixture(scope="module")
def server(path: Path) -> Iterator[LlamaCppServer]:
    with LlamaCppServer(path) as running:
        yield running


def orders(length: int) -> list[tuple[str, ...]]:
    """Return the orders of some samplers. llama.cpp computes 0 · log 0 in `typ_p` for tokens that `top_n_sigma` removed
    before, so its typical sampling is undefined then.
    """
    found = itertools.permutations(NAMES, length)
    return [one for one in found if "typ_p" not in one or "top_n_sigma" not in one[: one.index("typ_p")]]


REPEATED: dict[str, Any] = {"prompt": [5, 99, 30, 77, 5, 99, 30, 77, 5, 99, 30], "temperature": 1.0}
CASES: dict[str, list[dict[str, Any]]] = {
    **{str(length): [{"samplers": list(names)} for names in orders(length)] for length in (1, 2, 3)},
    "fields": [
        {"dynatemp_range": 0.5, "dynatemp_exponent": 1.3},
        {"dry_multiplier": 0.8, "dry_base": 1.75, "dry_allowed_length": 2, "dry_penalty_last_n": 200, **REPEATED},
        {"dry_multiplier": 0.8, "dry_allowed_length": 1, "dry_penalty_last_n": 6, **REPEATED},
        {"xtc_probability": 1.0, "xtc_threshold": 0.02},
        {"logit_bias": [[45, 2.5], [222, False]]},
        {"top_n_sigma": -1, "typical_p": 1.0, "top_p": 0.01},
    ],
    "mirostat": [{"mirostat": 2, "mirostat_tau": tau, "samplers": ["top_k"]} for tau in (0.5, 1.5, 3.0)],
}
"""Further fields of the calls; `mirostat_tau` in bits."""


@pytest.mark.parametrize("case", CASES)
def test_order_of_samplers_gives_the_probabilities_of_llama_cpp(case: str, path: Path, server: LlamaCppServer) -> None:
    model = core.load(path)
    for added in CASES[case]:
        body: dict[str, Any] = {"prompt": gguf_models.PROMPT, **FIELDS, **added}
        more = {"n_predict": 1, "n_probs": LISTED, "post_sampling_probs": True, "repeat_last_n": 200}
        (step,) = server._post("completion", {**body, **more})["completion_probabilities"]
        theirs = {one["id"]: one["prob"] for one in step["top_probs"] if one["prob"] > 0}
        (request,) = parse_call({**body, "model": "tiny", "max_tokens": 1}, ServedModel("tiny"), False).requests()
        run = core.run(model, core.Request(body["prompt"], request.settings, top_n=LISTED))
        (token,) = (event for event in run.events if isinstance(event, TokenChosen))
        ours = {one.id: one.probability for one in token.alternatives if one.probability > 0}
        assert ours.keys() == theirs.keys(), added
        assert ours == pytest.approx(theirs, abs=TOLERANCE), added
