"""Trial of one architecture: a tiny random model, every strategy on the dynamic cache, every cache with two of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from transformers import GenerationConfig

from decodescope import core
from decodescope.core.errors import DecodescopeError
from tests.core import tiny, zoo
from tests.core.test_contrastive import last_states
from tests.core.test_contrastive import naive as contrastive_by_hand
from tests.core.test_dola import naive as dola_by_hand

NEW, PROMPT = 12, 20
"""Tokens written, and read: longer than the windows of the tiny models."""
ALPHA, CANDIDATES, LAYERS = 0.6, 3, [0, 2]
END = 60
"""The token that ends a text."""
STRATEGIES: dict[str, dict[str, Any]] = {
    "greedy": {},
    "sampling": {"do_sample": True, "top_k": 1},
    "beam_search": {"num_beams": 3},
    "beam_sampling": {"num_beams": 3, "do_sample": True, "top_k": 2},
    "diverse_beam_search": {"num_beams": 4, "num_beam_groups": 2, "diversity_penalty": 0.5},
    "constrained_beam_search": {"num_beams": 3, "force_words_ids": [[7]]},
    "contrastive": {"penalty_alpha": ALPHA, "top_k": CANDIDATES},
    "dola": {"dola_layers": LAYERS},
    "assisted": {"num_assistant_tokens": 3},
    "prompt_lookup": {"prompt_lookup_num_tokens": 4},
    "early_exit": {"assistant_early_exit": 2, "num_assistant_tokens": 3},
    "token_tree": {"num_assistant_tokens": 3},
}
"""What each is tried with. Sampling among one is greedy, which can be compared without random numbers."""
LOSSLESS = ("greedy", "sampling", "assisted", "prompt_lookup", "early_exit", "token_tree")
"""They write what `generate` writes greedily."""
WITH_EVERY_CACHE = ("greedy", "prompt_lookup")
"""One that only appends, and one that takes tokens back."""

EQUAL, RUNS, DIFFERS, REFUSED, RAW = "equal", "runs", "differs", "refused", "raw"


class RunResult(NamedTuple):
    """The outcome of one run and its sentence."""

    state: str
    note: str = ""


def try_kind(kind: str) -> dict[str, Any]:
    """Return the results of one architecture as plain values; never raises."""
    warnings.simplefilter("ignore")
    try:
        model = zoo.make(kind)
        if _has_no_likeliest_token(model):
            return {"kind": kind, "skipped": "the tiny model gives every token one score"}
        greedy = _generated(model, {})
    except BaseException as error:
        return {"kind": kind, "skipped": _in_a_line(error)}
    wanted = _references(model, greedy)
    return {
        "kind": kind,
        "class": type(model.model).__name__,
        "encoder_decoder": model.is_encoder_decoder,
        "strategies": {name: tuple(_cell(model, name, "dynamic", wanted)) for name in STRATEGIES},
        "caches": {
            name: {cache: tuple(_cell(model, name, cache, wanted)) for cache in core.caches.registry}
            for name in WITH_EVERY_CACHE
        },
    }


def _references(model: core.LoadedModel, greedy: list[int]) -> dict[str, list[int]]:
    """Return the expected text of each strategy, where a reference exists."""
    ids = zoo.prompt(PROMPT)
    beams = _generated_or_none(model, STRATEGIES["beam_search"])
    found = {**dict.fromkeys(LOSSLESS, greedy), **({"beam_search": beams} if beams is not None else {})}
    if not _has_same_logits(model, ids, greedy):
        return found
    reported: dict[str, Callable[[], list[int]]] = {
        "contrastive": lambda: _ended(contrastive_by_hand(model, ids, NEW, CANDIDATES, ALPHA)),
        "dola": lambda: _ended(dola_by_hand(model, ids, NEW, LAYERS)[0]),
    }
    return {**found, **dict(_available_references(reported))}


def _has_no_likeliest_token(model: core.LoadedModel) -> bool:
    """Return whether the tiny model has several likeliest tokens, so that each of them is right."""
    best, next_best = _logits(model)[0][0].topk(2).values.tolist()
    return bool(best - next_best < 1e-6)


def _has_same_logits(model: core.LoadedModel, ids: list[int], greedy: list[int]) -> bool:
    """Return whether the module's scores for a whole text equal those while it writes the text. Some count positions
    differently, some keep windows.
    """
    try:
        pairs = [(step[0], last_states(model, ids, greedy[:place])[0]) for place, step in enumerate(_logits(model))]
        return all(torch.allclose(one, other, atol=1e-3) for one, other in pairs)
    except Exception:  # a module that cannot be read so
        return False


def _logits(model: core.LoadedModel) -> tuple[torch.Tensor, ...]:
    """Return the module's logits [1, V] at each step of its greedy text, as in `generate`."""
    tensor = torch.tensor([zoo.prompt(PROMPT)])
    reported = _settings({"output_logits": True, "return_dict_in_generate": True})
    written = model.model.generate(tensor, generation_config=reported, attention_mask=torch.ones_like(tensor))
    return tuple(written.logits)


def _generated_or_none(model: core.LoadedModel, given: dict[str, Any]) -> list[int] | None:
    try:
        return _generated(model, given)
    except Exception:  # `generate` itself cannot do it
        return None


def _available_references(told: dict[str, Callable[[], list[int]]]) -> Iterator[tuple[str, list[int]]]:
    for name, ask in told.items():
        try:
            yield name, ask()
        except Exception:  # the module cannot do it by itself; then nothing is compared
            continue


def _ended(text: list[int]) -> list[int]:
    """Up to its end, which is part of it."""
    return text[: text.index(END) + 1] if END in text else text


def _settings(given: dict[str, Any]) -> GenerationConfig:
    return GenerationConfig(
        max_new_tokens=NEW, eos_token_id=END, pad_token_id=0, **{"num_beams": 1, "do_sample": False, **given}
    )


def _generated(model: core.LoadedModel, given: dict[str, Any]) -> list[int]:
    written: list[int] = tiny.reference(model, zoo.prompt(PROMPT), _settings(given))[0]
    return written


def _cell(model: core.LoadedModel, strategy: str, cache: str, wanted: dict[str, list[int]]) -> RunResult:
    return judged(model, strategy, cache, wanted, lambda: _written(model, strategy, cache))


def judged(
    model: core.LoadedModel, strategy: str, cache: str, wanted: dict[str, list[int]], ask: Callable[[], list[int]]
) -> RunResult:
    """Run a strategy with a cache and compare the text with the expected one."""
    try:
        found = ask()
    except DecodescopeError as error:
        return RunResult(
            RAW if isinstance(error, core.errors.UnforeseenError) else REFUSED, _anonymous(error.cause, model)
        )
    except BaseException as error:
        return RunResult(RAW, f"{type(error).__name__}: {error}"[:300])
    if strategy not in wanted or not core.caches.registry[cache].exact:
        return RunResult(RUNS)
    return _compared(found, wanted[strategy])


def _written(model: core.LoadedModel, strategy: str, cache: str) -> list[int]:
    drafters = (model,) if core.strategies.registry[strategy].takes_drafters else ()
    options = {"widths": "2 2"} if strategy == "token_tree" else {}
    settings = _settings(STRATEGIES[strategy])
    request = core.Request(zoo.prompt(PROMPT), settings, strategy, options, cache, drafters=drafters)
    return list(core.run(model, request).sequences[0])


def _compared(found: list[int], wanted: list[int]) -> RunResult:
    if found == wanted:
        return RunResult(EQUAL)
    same = next((place for place, pair in enumerate(zip(found, wanted, strict=False)) if pair[0] != pair[1]), 0)
    return RunResult(DIFFERS, f"{same} of {len(wanted)} tokens are the same")


def _in_a_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1] if lines else ''}"[:200]


def _anonymous(cause: str, model: core.LoadedModel) -> str:
    """A sentence that is the same for every model of which it is true."""
    return cause.replace(model.name, "the model")
