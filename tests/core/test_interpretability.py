"""Interpretability equals the model's own computation: layers, attention, and the influence of the text."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
import pytest
import torch

from decodescope import core
from decodescope.core.decoding.forward.fused_decoder import get_fused_decoder
from decodescope.core.errors import (
    EmptyPromptError,
    InsideError,
    ParameterError,
    PromptError,
    TextTooLongError,
    TokenizerMissingError,
)
from decodescope.core.interpretability.lens import LayerReader
from decodescope.core.interpretability.occlusion import split_units
from tests.core import tiny, zoo

KINDS = ("llama", "gpt2", "gemma2", "t5", "bart", "mamba")
OTHERS = ("opt", "gpt_neox", "cohere", "openai-gpt", "gemma3", "gemma4_text", "switch_transformers")
"""A norm before the last one, none at all, scaled logits, a head of another kind; as many layers that see; inputs of
each layer; an encoder that routes."""
SOURCE = 5


def model_of(kind: str) -> core.LoadedModel:
    return tiny.shared(kind) if kind in tiny.ALL else zoo.make(kind)


def source_of(model: core.LoadedModel) -> int | None:
    return SOURCE if model.is_encoder_decoder else None


def logs(model: core.LoadedModel, before: Sequence[int], source: int | None = None) -> torch.Tensor:
    """log p of the next token, [V], by one plain call of the module; `source` ids go to the encoder."""
    given = {"input_ids": torch.tensor([list(before)])}
    if source is not None:
        start = model.generation_config.decoder_start_token_id
        given = {
            "input_ids": torch.tensor([list(before[:source])]),
            "decoder_input_ids": torch.tensor([[start, *before[source:]]]),
        }
    with torch.inference_mode():
        return model.model(**given, use_cache=False).logits[0, -1].float().log_softmax(-1)


@pytest.mark.parametrize("kind", [*KINDS, *OTHERS])
def test_last_layer_equals_the_model_output(kind: str) -> None:
    model, ids, step = model_of(kind), tiny.prompt(16), 11
    rows = core.lens(model, ids, step, source=source_of(model))
    shares = logs(model, ids[:step], source_of(model)).exp()
    assert [row.layer for row in rows] == list(range(model.layers + 1))
    last = rows[-1]
    assert last.first == int(shares.argmax())
    assert last.first_probability == pytest.approx(float(shares.max()), abs=1e-5)
    assert last.probability == pytest.approx(float(shares[ids[step]]), abs=1e-5)
    assert last.rank == int((shares > shares[ids[step]]).sum()) + 1
    assert len({row.first_probability for row in rows}) == len(rows), "each layer has a view of its own"


def test_lower_layers_go_through_the_final_norm_and_the_head() -> None:
    model, ids, step = tiny.shared("llama"), tiny.prompt(16), 11
    network = model.model
    with torch.inference_mode():
        states = network(input_ids=torch.tensor([ids[:step]]), output_hidden_states=True).hidden_states
        for row in core.lens(model, ids, step)[:-1]:  # transformers' last one is normed already
            shares = model.head(network.get_decoder().norm(states[row.layer][0, -1])).softmax(-1)
            assert row.first == int(shares.argmax())
            assert row.probability == pytest.approx(float(shares[ids[step]]), abs=1e-5)
            assert row.rank == int((shares > shares[ids[step]]).sum()) + 1


@pytest.mark.parametrize("kind", ["gpt2", "t5", "mamba"])
def test_lens_of_a_text_equals_lens_of_each_token(kind: str) -> None:
    model, ids = model_of(kind), tiny.prompt(14)
    reported = list(core.lens_text(model, ids, 6, source=source_of(model)))
    assert len(reported) == 8
    for step, rows in enumerate(reported, 6):
        for one, other in zip(rows, core.lens(model, ids, step, source=source_of(model)), strict=True):
            assert (one.layer, one.first, one.rank) == (other.layer, other.first, other.rank)
            assert one.probability == pytest.approx(other.probability, abs=1e-5)


def test_lens_leaves_the_model_unchanged() -> None:
    model, ids = tiny.make("llama"), tiny.prompt(9)
    before = core.run(model, core.Request(ids, {"max_new_tokens": 4})).sequences
    fused = get_fused_decoder(model)
    assert fused is not None
    core.lens(model, ids, 5)
    assert model.model.config.num_hidden_layers == 4
    assert get_fused_decoder(model) is fused, "nothing is hooked or patched"
    assert core.run(model, core.Request(ids, {"max_new_tokens": 4})).sequences == before


def test_unreadable_layers_are_refused_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("xlm", "gemma3n_text"):
        with pytest.raises(InsideError, match="cannot be read as predictions"):
            core.lens(zoo.make(kind), tiny.prompt(9), 5)
    monkeypatch.setattr(LayerReader, "apply_head", lambda self, states: torch.zeros(len(states), tiny.VOCABULARY))
    with pytest.raises(InsideError, match="do not depend on the last layer's state alone"):
        core.lens(tiny.shared("llama"), tiny.prompt(9), 5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", [None, 7])
def test_occlusion_effects_equal_those_of_shortened_texts(kind: str, other: int | None) -> None:
    model, ids, step = model_of(kind), tiny.prompt(24), 21
    source = source_of(model)
    reported = core.occlude(model, ids, step, other, source=source)
    assert [(effect.start, effect.stop) for effect in reported] == [(place, place + 1) for place in range(step)]

    def held(before: Sequence[int], encoded: int | None) -> float:
        log = logs(model, before, encoded)
        return float(log[ids[step]] - (log[other] if other is not None else 0.0))

    whole, allowed = held(ids[:step], source), 1e-2 if kind == "mamba" else 2e-4  # recurrences spread rounding errors
    for start, stop, effect in reported:
        shorter = source - 1 if source is not None and start < source else source
        assert effect == pytest.approx(whole - held(ids[:start] + ids[stop:step], shorter), abs=allowed)


def test_occlusion_with_a_neutral_replacement_token() -> None:
    model, ids, step = tiny.shared("gpt2"), tiny.prompt(12), 9
    whole = float(logs(model, ids[:step])[ids[step]])
    for start, stop, effect in core.occlude(model, ids, step, instead=4):
        replaced = [*ids[:start], 4, *ids[stop:step]]
        assert effect == pytest.approx(whole - float(logs(model, replaced)[ids[step]]), abs=1e-4)


def test_neutral_token_is_padding_or_the_given_text() -> None:
    model = core.load("storyteller")
    assert core.neutral_token(model) == model.tokenizer.pad_token_id
    assert model.pieces[core.neutral_token(model, " the")] == " the"
    with pytest.raises(ParameterError, match="no single token for “hippopotamus”") as found:
        core.neutral_token(model, "hippopotamus")
    assert found.value.parameter == "instead"
    with pytest.raises(TokenizerMissingError):
        core.neutral_token(tiny.shared("llama"))


def test_text_is_split_into_words_and_sentences() -> None:
    model = core.load("storyteller")
    ids = core.encode(model, 'Mia had a red ball. "Look!" said Tom. She threw the ball to')
    words = ["".join(model.pieces.texts(ids)[start:stop]) for start, stop in split_units(model, ids, "word")]
    assert [word.strip() for word in words[1:]] == 'Mia had a red ball. "Look!" said Tom. She threw the ball to'.split()
    sentences = ["".join(model.pieces.texts(ids)[start:stop]) for start, stop in split_units(model, ids, "sentence")]
    assert [one.strip() for one in sentences[1:]] == [
        "Mia had a red ball.", '"Look!"', "said Tom.", "She threw the ball to"
    ]  # fmt: skip
    text = [*ids, *core.run(model, core.Request(ids, {"max_new_tokens": 2})).sequences[0]]
    for unit in ("word", "sentence"):
        reported = core.occlude(model, text, len(ids), unit=unit)
        assert [(effect.start, effect.stop) for effect in reported] == split_units(model, ids, unit)
        whole = float(logs(model, ids)[text[len(ids)]])
        start, stop, effect = reported[2]
        assert effect == pytest.approx(whole - float(logs(model, ids[:start] + ids[stop:])[text[len(ids)]]), abs=1e-4)


def test_batches_can_be_stopped_between() -> None:
    model, ids, cancel = tiny.shared("llama"), tiny.prompt(60), threading.Event()
    reported = []
    for part in core.occlusion(model, ids, 55, cancel=cancel):
        reported.append(part)
        cancel.set()
    assert len(reported) == 1
    assert 0 < reported[0].done < reported[0].total == 55
    assert core.occlude(model, ids, 55, cancel=cancel) == ()
    assert list(core.lens_text(model, ids, 5, cancel=cancel)) == []


def test_occlusion_of_a_single_unit_returns_nothing() -> None:
    assert core.occlude(tiny.shared("gpt2"), [5, 6], 1) == ()


@pytest.mark.parametrize("look", [core.lens, core.occlude])
def test_invalid_arguments_raise_named_errors(look: object) -> None:
    assert callable(look)
    model, ids = tiny.shared("llama"), tiny.prompt(8)
    for step in (0, -1, 8, 99, None, 2.5, True, "3"):
        with pytest.raises(ParameterError, match="step is") as found:
            look(model, ids, step)
        assert found.value.parameter == "step"
    for wrong, error in (([], EmptyPromptError), ("text", PromptError), ([1, None], PromptError), (7, PromptError)):
        with pytest.raises(error):
            look(model, wrong, 1)
    with pytest.raises(ParameterError, match="are 0 to 60"):
        look(model, [5, tiny.VOCABULARY], 1)
    with pytest.raises(TextTooLongError):
        look(model, tiny.prompt(300), 280)
    with pytest.raises(ParameterError, match="no encoder"):
        look(model, ids, 4, source=2)
    for source in (0, 5, -1):
        with pytest.raises(ParameterError, match="source is"):
            look(tiny.shared("t5"), ids, 4, source=source)


@pytest.mark.parametrize("look", [core.lens, core.occlude, core.attention, core.lens_text])
def test_model_name_instead_of_a_model_raises_an_error(look: object) -> None:
    assert callable(look)
    for wrong in ("storyteller", None):
        with pytest.raises(ParameterError, match="Load it first"):
            list(look(wrong, [5, 6, 7], 2))
        with pytest.raises(ParameterError, match="Load it first"):
            core.neutral_token(wrong)  # type: ignore[arg-type]


def test_candidate_may_be_a_numpy_scalar() -> None:
    model, ids = tiny.shared("llama"), tiny.prompt(8)
    assert core.occlude(model, ids, 4, np.int64(7)) == core.occlude(model, ids, 4, 7)


def test_invalid_occlusion_arguments_raise_an_error() -> None:
    model, ids = tiny.shared("llama"), tiny.prompt(8)
    for other in (-1, tiny.VOCABULARY, "a", 2.0, True):
        with pytest.raises(ParameterError, match="other is"):
            core.occlude(model, ids, 4, other)
    with pytest.raises(ParameterError, match="instead is"):
        core.occlude(model, ids, 4, instead=tiny.VOCABULARY)
    with pytest.raises(ParameterError, match="unit is"):
        core.occlude(model, ids, 4, unit="letter")
    with pytest.raises(TokenizerMissingError):
        core.occlude(model, ids, 4, unit="word")


@pytest.mark.parametrize("kind", ["llama", "gemma2", "bart"])
def test_attention_equals_that_of_the_module(kind: str) -> None:
    model, ids, step = model_of(kind), tiny.prompt(14), 9
    source, network = source_of(model), model.model
    before = network.config._attn_implementation
    rows = core.attention(model, ids, step, source=source)
    assert network.config._attn_implementation == before
    assert [row.layer for row in rows] == list(range(1, model.layers + 1))
    assert {len(row.shares) for row in rows} == {step}
    for row in rows:
        assert sum(row.shares[:source] if source else row.shares) == pytest.approx(1.0, abs=1e-5)
    network.set_attn_implementation("eager")
    given = {"input_ids": torch.tensor([ids[: source or step]])}
    if source:
        given["decoder_input_ids"] = torch.tensor([[3, *ids[source:step]]])
    with torch.inference_mode():
        reported = network(**given, output_attentions=True)
    network.set_attn_implementation(before)
    weights = (reported.cross_attentions if source else reported.attentions)[1][0, :, -1].mean(0)
    assert rows[1].shares[: len(weights)] == pytest.approx(weights.tolist(), abs=1e-6)


def test_model_without_attention_weights_is_refused() -> None:
    """A recurrent model has none, and ProphetNet returns scores instead."""
    for model, source in ((tiny.shared("mamba"), None), (zoo.make("prophetnet"), SOURCE)):
        with pytest.raises(InsideError, match="does not return its attention weights"):
            core.attention(model, tiny.prompt(12), 8, source=source)
