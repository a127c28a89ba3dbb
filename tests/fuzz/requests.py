"""Random requests, mostly invalid, over small models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from transformers import GenerationConfig

from decodescope import core
from tests.fuzz.values import numbers, odd

FIELDS = sorted(set(GenerationConfig().to_dict()) - {"transformers_version", "_from_model_config"})
OPTIONS = sorted({p.name for strategy in core.strategies.registry.values() for p in strategy.parameters if p.option})
CACHE_OPTIONS = sorted({p.name for cache in core.caches.registry.values() for p in cache.parameters})
KINDS = ("llama", "mistral", "gpt2", "t5", "mamba", "bart")
_SENSE: dict[str, Any] = {
    "do_sample": True, "num_beams": 3, "num_beam_groups": 3, "diversity_penalty": 0.5, "penalty_alpha": 0.5, "top_k": 4,
    "dola_layers": "low", "prompt_lookup_num_tokens": 3, "assistant_early_exit": 2, "num_return_sequences": 2,
    "repetition_penalty": 1.3, "no_repeat_ngram_size": 2, "force_words_ids": [[7, 8]], "bad_words_ids": [[5]],
    "guidance_scale": 1.5, "stop_strings": ["x"], "temperature": 0.7, "typical_p": 0.9, "max_time": 5.0, "min_p": 0.05,
    "encoder_repetition_penalty": 1.2, "sequence_bias": [[[5], 2.0]], "suppress_tokens": [9], "eos_token_id": [2, 3],
    "exponential_decay_length_penalty": (2, 1.1), "forced_eos_token_id": 2, "min_new_tokens": 2, "use_cache": False,
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """The parts of a random request."""

    kind: str
    settings: dict[str, Any]
    prompt: Any
    strategy: Any
    options: dict[str, Any]
    cache: Any
    cache_options: dict[str, Any]
    seed: Any
    top_n: Any
    negative: Any
    draft: bool


_sensible = st.dictionaries(st.sampled_from(sorted(_SENSE)), st.none(), max_size=3).map(
    lambda names: {name: _SENSE[name] for name in names}
)
_settings = st.builds(
    lambda sensible, one: {**sensible, **one},
    _sensible,
    st.one_of(st.just({}), st.dictionaries(st.sampled_from(FIELDS), st.one_of(odd, numbers), min_size=1, max_size=2)),
)
_ids = st.lists(st.integers(4, 60), min_size=1, max_size=12)
_prompt = st.one_of(_ids, odd, st.just([{"role": "user", "content": "x"}]))


def _mostly(usual: st.SearchStrategy[Any], strange: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """One strange part in eight: two of them hide each other."""
    return st.integers(0, 7).flatmap(lambda chance: strange if chance == 7 else usual)


cases = st.builds(
    Case,
    kind=st.sampled_from(KINDS),
    settings=_settings,
    prompt=_mostly(_ids, _prompt),
    strategy=_mostly(st.one_of(st.none(), st.sampled_from(sorted(core.strategies.registry))), odd),
    options=_mostly(st.just({}), st.dictionaries(st.sampled_from(OPTIONS), st.one_of(odd, numbers), max_size=2)),
    cache=_mostly(st.one_of(st.just("dynamic"), st.sampled_from(sorted(core.caches.registry))), odd),
    cache_options=_mostly(
        st.just({}), st.dictionaries(st.sampled_from(CACHE_OPTIONS), st.one_of(odd, numbers), max_size=2)
    ),
    seed=_mostly(st.integers(0, 99), odd),
    top_n=_mostly(st.just(5), odd),
    negative=_mostly(st.none(), odd),
    draft=st.sampled_from((False, False, True)),
)


def request(case: Case, drafters: tuple[core.LoadedModel, ...]) -> core.Request:
    """Build the request as a program would."""
    return core.Request(
        case.prompt,
        core.make_config({"max_new_tokens": 6, **case.settings}),
        strategy=case.strategy,
        options=case.options,
        cache=case.cache,
        cache_options=case.cache_options,
        seed=case.seed,
        top_n=case.top_n,
        negative_prompt=case.negative,
        drafters=drafters if case.draft else (),
    )
