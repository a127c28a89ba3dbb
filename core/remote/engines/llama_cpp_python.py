"""The llama-cpp-python server. Its own defaults apply to settings that are not sent: it penalizes repetition and
truncates.
"""

from __future__ import annotations

from decodescope.core.remote.engines.base import EngineKind
from decodescope.core.remote.engines.formats import GRAMMAR, OPENAI_SETTINGS, choice_as_gbnf, gbnf_field
from decodescope.resources.language import mark

ENGINE = EngineKind(
    "llama-cpp-python",
    "llama-cpp-python",
    {**OPENAI_SETTINGS, "top_k": "top_k", "min_p": "min_p", "repetition_penalty": "repeat_penalty", **GRAMMAR},
    alternatives=100,
    scores=True,
    unique_paths=frozenset({"/extras/tokenize", "/extras/detokenize"}),
    grammars={"choice": choice_as_gbnf, "gbnf": gbnf_field},
    no_probabilities_notice=mark(
        "The engine was started without log-probabilities. Start it with --logits_all true to see them."
    ),
    order=40,
)
