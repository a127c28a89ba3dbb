"""Lookahead decoding: the model guesses n-grams in its own passes and verifies matching ones."""

from __future__ import annotations

from decodescope.core.common.claim import GREEDY_CELL, Claim, ClaimCell
from decodescope.core.common.hf_generation import GenerateEquivalent
from decodescope.core.parameter import Parameter
from decodescope.core.strategies.speculative import CHAINS, make_speculative
from decodescope.core.strategies.token_tree import trees_unsupported_reason
from decodescope.resources.language import mark, tr

WINDOW = Parameter(
    "lookahead_window", mark("Window"), "int", 5,
    mark("Number of positions guessed ahead in every pass (W). Each adds N − 1 tokens to the pass."),
    minimum=1, maximum=64, soft_maximum=15, step=1, option=True,
)  # fmt: skip
SIZE = Parameter(
    "lookahead_ngram", mark("n-gram"), "int", 3,
    mark("Tokens of an n-gram (N): the first must be the text's last token, the others are drafted."),
    minimum=2, maximum=16, soft_maximum=8, step=1, option=True,
)  # fmt: skip
GUESSES = Parameter(
    "lookahead_guesses", mark("Verified at once"), "int", 5,
    mark("Number of n-grams kept for each token and checked in one pass (G)."),
    minimum=1, maximum=32, soft_maximum=15, step=1, option=True,
)  # fmt: skip
FROM_TEXT = Parameter(
    "pool_from_text", mark("n-grams from the text"), "bool", True,
    mark("Also fill the pool from prompt and text, as prompt lookup does."),
    option=True, advanced=True,
)  # fmt: skip

CLAIMS = (
    Claim(
        name="lookahead-saves-passes",
        title=mark("Guessing ahead saves passes without a draft model"),
        plain=mark("The model can guess word sequences by itself and then write several words at a time."),
        exact=mark("Tokens per pass are higher with lookahead decoding than with greedy decoding."),
        source="Fu, Bailis, Stoica, Zhang 2024, Break the Sequential Dependency of "
            "LLM Inference Using Lookahead Decoding",
        address="https://arxiv.org/abs/2402.02057",
        baseline=GREEDY_CELL,
        tested=ClaimCell(mark("Lookahead"), {"do_sample": False, "schedule": "constant"}, "lookahead"),
        measure="tokens_per_pass", expects="higher", margin=0.2, max_new_tokens=64,
    ),
)  # fmt: skip

STRATEGY = make_speculative(
    "decode_lookahead",
    name="lookahead",
    title=mark("Lookahead"),
    summary=mark("The model guesses word sequences in its own passes and checks those that fit. Needs no draft model."),
    claims=CLAIMS,
    paper="Fu et al. 2024, Break the Sequential Dependency of LLM Inference Using Lookahead Decoding",
    aliases=("lookahead_decoding", "jacobi"),
    order=65,
    drafts_from=lambda options: (tr("Lookahead"),),
    needs=CHAINS | {"select"},
    own=(WINDOW, SIZE, GUESSES, FROM_TEXT),
    lengths=(),
    checks=(trees_unsupported_reason,),
    generate_equivalent=lambda request: GenerateEquivalent(missing=tr("transformers has no lookahead decoding.")),
)
