"""Flags select the same strategy as in transformers; each strategy's file declares its own properties."""

from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import product

import pytest
from transformers import GenerationConfig

from decodescope import core
from decodescope.core.errors import CacheError, ParameterError, StrategyError
from decodescope.core.strategies import Flags, flags_of, registry, selected_by
from tests.core import tiny


def test_any_flags_mean_exactly_one_strategy() -> None:
    for values in product((False, True), repeat=len(Flags._fields)):
        flags = Flags(*values)
        assert sum(strategy.selects(flags) for strategy in registry.values()) == 1, flags


@pytest.mark.parametrize("beams", [None, 1, 4])
@pytest.mark.parametrize("groups", [None, 2])
@pytest.mark.parametrize("samples", [None, True])
@pytest.mark.parametrize("alpha", [None, 0.6])
@pytest.mark.parametrize("extra", [{}, {"dola_layers": "low"}, {"prompt_lookup_num_tokens": 3}, {"top_k": 1}])
def test_flags_select_the_generation_mode_of_transformers(beams, groups, samples, alpha, extra) -> None:  # type: ignore[no-untyped-def]
    settings = {"num_beams": beams, "num_beam_groups": groups, "do_sample": samples, "penalty_alpha": alpha, **extra}
    config = GenerationConfig()
    for name, value in {"top_k": 50, **settings}.items():
        setattr(config, name, value)
    reference = config.get_generation_mode().value
    result = selected_by(flags_of(settings))
    assert (
        reference in result.aliases
        or (reference == "assisted_generation" and result.speculates)
        or reference == result.name
    )


@pytest.mark.parametrize(
    "settings", [{"top_k": "x"}, {"num_beams": "4"}, {"num_beam_groups": [2]}, {"penalty_alpha": "0.6"}]
)
def test_non_numeric_flag_raises_parameter_error(settings: dict[str, object]) -> None:
    with pytest.raises(ParameterError, match=next(iter(settings))):
        core.run(tiny.shared("llama"), core.Request([5], core.make_config(settings)))


def test_drafts_with_beams_are_refused() -> None:
    model = tiny.shared("llama")
    with pytest.raises(StrategyError, match="Beam search"):
        core.run(model, core.Request([5], GenerationConfig(num_beams=2), drafters=(model,)))


@pytest.mark.parametrize("name", registry)
def test_speculative_strategies_need_truncation(name: str) -> None:
    strategy = registry[name]
    assert strategy.speculates == ("truncate" in strategy.needs)


@pytest.mark.parametrize(
    ("settings", "rows"), [({}, 4), ({"top_k": 7}, 7), ({"num_beams": 3}, 3), ({"top_k": 500}, 90)]
)
def test_strategies_declare_their_cache_rows(settings: dict[str, int], rows: int) -> None:
    name = "beam_search" if "num_beams" in settings else "contrastive"
    config = core.make_config({"top_k": 4, **settings})
    assert registry[name].rows(config, 90) == rows


def test_cache_without_truncation_is_named_in_the_error() -> None:
    with pytest.raises(CacheError, match="drop its last tokens"):
        core.run(tiny.shared("llama"), core.Request([5], strategy="prompt_lookup", cache="sink"))


def test_unsupported_half_of_a_cache_is_named_in_the_error() -> None:
    options = {"self": "quantized"}
    with pytest.raises(CacheError, match="drop its last tokens"):
        core.run(
            tiny.shared("t5"),
            core.Request([5], strategy="prompt_lookup", cache="encoder_decoder", cache_options=options),
        )


def test_request_is_picklable_and_live_objects_are_passed_separately() -> None:
    model, store = tiny.shared("llama"), core.PrefixStore()
    request = core.Request([5, 6, 7], core.make_config({"max_new_tokens": 8}), strategy="assisted")
    assert pickle.loads(pickle.dumps(request)) == request
    beside = core.run(model, request, prefixes=store, drafters=(model,))
    within = core.run(model, replace(request, drafters=(model,)))
    assert beside.sequences == within.sequences
    assert store.prefixes
    with pytest.raises(StrategyError, match="no draft model"):
        core.run(model, request)
    inside = core.estimate(model, replace(request, drafters=(model,)))
    assert core.estimate(model, request, drafters=(model,)).needed == inside.needed


def test_use_mtp_default_without_heads_is_ignored() -> None:
    model = tiny.shared("llama")
    with pytest.raises(StrategyError, match="no multi-token prediction heads"):
        core.run(model, core.Request(tiny.prompt(), {"use_mtp": True, "max_new_tokens": 2}))
    own = tiny.make("llama")
    own.generation_config.use_mtp = True
    assert len(core.run(own, core.Request(tiny.prompt(), {"max_new_tokens": 2})).sequences[0]) == 2
