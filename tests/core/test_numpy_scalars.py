"""NumPy and torch scalars are accepted wherever a number is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import transformers as t

from decodescope import core
from decodescope.core.common.setting_values import to_plain_value
from decodescope.core.errors import ParameterError
from tests.core import tiny

INTEGERS: tuple[Callable[[int], Any], ...] = (np.int64, np.int32, np.uint8, np.array, torch.tensor)
FLOATS: tuple[Callable[[float], Any], ...] = (np.float64, np.float32, np.float16, np.array, torch.tensor)


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (np.int64(3), 3), (np.float32(0.5), 0.5), (np.bool_(True), True), (torch.tensor(3), 3), (np.str_("a"), "a"),
        (torch.tensor(0.5, dtype=torch.bfloat16), 0.5), (torch.tensor(True), True), (np.array([1, 2]), [1, 2]),
        ([np.int64(1), [torch.tensor(2)]], [1, [2]]), ((np.int64(1),), (1,)), ({np.int64(1)}, {1}),
        ({(np.int64(5),): np.float32(0.5)}, {(5,): 0.5}), ({"a": [np.int8(1)]}, {"a": [1]}),
    ],
    ids=repr,
)  # fmt: skip
def test_numpy_and_torch_scalars_are_converted(value: Any, plain: Any) -> None:
    found = to_plain_value(value)
    assert found == plain
    assert repr(found) == repr(plain)


@pytest.mark.parametrize(
    "value", [None, "text", 5, [1, "a"], {"a": (1, 2)}, b"x", range(3), object()], ids=lambda one: type(one).__name__
)
def test_plain_values_are_returned_unchanged(value: Any) -> None:
    assert to_plain_value(value) is value


@pytest.mark.parametrize("as_object", [False, True])
@pytest.mark.parametrize("of", INTEGERS)
def test_request_accepts_integer_scalars(of: Callable[[int], Any], as_object: bool) -> None:
    settings: dict[str, Any] = {
        "max_new_tokens": of(5), "do_sample": np.bool_(True), "top_k": of(4), "eos_token_id": [of(2)],
        "suppress_tokens": [of(9)], "num_return_sequences": of(2), "bad_words_ids": [[of(7), of(8)]],
    }  # fmt: skip
    plain = to_plain_value(settings)
    config = t.GenerationConfig(**plain) if as_object else settings
    if as_object:
        vars(config).update(settings)  # type: ignore[call-overload]
    request = core.Request(
        [of(5), of(6)], config, seed=of(3), top_n=of(2), beginning=[of(7)], options={"dry_allowed_length": of(2)}
    )
    model = tiny.shared("llama")
    expected = core.Request([5, 6], plain, seed=3, top_n=2, beginning=[7], options={"dry_allowed_length": 2})
    found = core.run(model, request)
    assert found.sequences == core.run(model, expected).sequences
    assert "tensor" not in core.as_code(request, "core", model=model) + repr(found.events[0])
    assert "np." not in core.as_code(request, "core", model=model) + repr(found.events[0])


@pytest.mark.parametrize("of", FLOATS)
def test_request_accepts_float_scalars(of: Callable[[float], Any]) -> None:
    settings = {"max_new_tokens": 4, "do_sample": True, "temperature": of(0.5), "top_p": of(0.75)}
    model, options = tiny.shared("llama"), {"xtc_probability": of(0.5)}
    found = core.run(model, core.Request([5, 6], settings, options=options, seed=1))
    plain = core.Request([5, 6], to_plain_value(settings), options={"xtc_probability": 0.5}, seed=1)
    assert found.sequences == core.run(model, plain).sequences


@pytest.mark.parametrize("of", INTEGERS)
def test_cache_options_accept_scalars(of: Callable[[int], Any]) -> None:
    request = core.Request([5, 6], {"max_new_tokens": 3}, cache="sink", cache_options={"window_length": of(16)})
    assert core.run(tiny.shared("llama"), request).sequences


@pytest.mark.parametrize("of", INTEGERS)
def test_other_functions_accept_scalars(of: Callable[[int], Any]) -> None:
    model, ids = tiny.shared("llama"), [of(5), of(6), of(7)]
    assert len(core.lens(model, ids, of(2))) == len(core.lens(model, [5, 6, 7], 2))
    assert list(core.lens_text(model, ids, of(1))) == list(core.lens_text(model, [5, 6, 7], 1))
    assert core.attention(model, ids, of(2)) == core.attention(model, [5, 6, 7], 2)
    assert core.occlude(model, ids, of(2), of(9), instead=of(3)) == core.occlude(model, [5, 6, 7], 2, 9, instead=3)
    assert len(core.score(model, ids, of(2))) == 2
    request = core.Request([5], {"max_new_tokens": 3})
    assert core.replay_step(model, request, ids, of(1), {"repetition_penalty": np.float32(1.5)}, sequence=of(0))
    assert core.ScoreCache(of(100))


def test_error_shows_a_scalar_as_a_plain_number() -> None:
    with pytest.raises(ParameterError, match=r"is 0, which is out of range") as caught:
        core.run(tiny.shared("llama"), core.Request([5], {"max_new_tokens": np.int64(0)}))
    assert "np." not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"do_sample": True, "temperature": 1e-38, "top_k": 0}, "temperature"),
        ({"do_sample": True, "temperature": 1e-45, "top_k": 5}, "temperature"),
        ({"do_sample": True, "temperature": 1e-38, "top_k": 0, "num_beams": 2}, "temperature"),
        ({"do_sample": True, "temperature": 1e-38, "num_beams": 3}, "temperature"),
        ({"sequence_bias": [[[token], 1e39] for token in range(61)]}, "sequence_bias"),
        ({"sequence_bias": [[[token], -1e39] for token in range(61)]}, "sequence_bias"),
    ],
    ids=str,
)
def test_overflowing_scores_name_the_scaling_setting(settings: dict[str, Any], named: str) -> None:
    with pytest.raises(ParameterError, match="scores exceed the range of float32") as caught:
        core.run(
            core.load("storyteller") if named == "temperature" else tiny.shared("llama"),
            core.Request([5, 6], {"max_new_tokens": 4, **settings}),
        )
    assert caught.value.parameter == named
    assert "ban" not in str(caught.value)


def test_banned_tokens_are_named_as_the_cause() -> None:
    with pytest.raises(ParameterError, match="all are banned"):
        core.run(tiny.shared("llama"), core.Request([5, 6], {"max_new_tokens": 4, "suppress_tokens": list(range(61))}))


def test_partially_imported_numpy_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys
    import types

    monkeypatch.setitem(sys.modules, "numpy", types.ModuleType("numpy"))
    assert to_plain_value({"a": (1, 2), "b": range(3)}) == {"a": (1, 2), "b": range(3)}
