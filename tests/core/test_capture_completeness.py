"""Calls with several loops, own loops, inner models and failures: what is recorded, or which warning says why not."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    Blip2Config,
    Blip2ForConditionalGeneration,
    GenerationConfig,
    LogitsProcessor,
    WhisperConfig,
    WhisperForConditionalGeneration,
)

from decodescope import core
from decodescope.core.events import Finished, RunStarted, TokenChosen
from decodescope.core.trace import EventChecker
from tests.core import tiny

IDS = torch.tensor([[5, 6, 7]])


def _capture(network: Any, call: Callable[[], Any]) -> tuple[core.Capture, Any, list[str]]:
    """Return the capture of a call, its result and the warnings; the result is the same without capture."""
    torch.manual_seed(3)
    plain = call()
    with warnings.catch_warnings(record=True) as caught, torch.no_grad():
        warnings.simplefilter("always")
        torch.manual_seed(3)
        with core.capture(network) as captured:
            result = call()
    assert torch.equal(plain, result)
    for run in captured:
        checker = EventChecker()
        checker.allow(1_000_000)
        for event in run.events:
            checker.check(event)
    return captured, result, [str(one.message) for one in caught if issubclass(one.category, RuntimeWarning)]


def whisper() -> Any:
    config = WhisperConfig(
        vocab_size=51865, d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16, num_mel_bins=8,
        max_source_positions=1500, max_target_positions=448,
    )  # fmt: skip
    torch.manual_seed(0)
    model: Any = WhisperForConditionalGeneration(config).eval()
    found = model.generation_config
    found.no_timestamps_token_id, found.max_initial_timestamp_index, found.is_multilingual = 50363, 50, True
    found.lang_to_id, found.task_to_id = {"<|en|>": 50259}, {"transcribe": 50359, "translate": 50358}
    found.decoder_start_token_id, found.eos_token_id, found.pad_token_id = 50258, 50257, 50257
    found.max_length, found.prev_sot_token_id, found.alignment_heads = 448, 50361, [[0, 0]]
    found.suppress_tokens, found.begin_suppress_tokens = [], []
    return model


@pytest.mark.parametrize("kind", ["long form", "temperature fallback"])
def test_every_loop_of_whisper_is_a_run(kind: str) -> None:
    model = whisper()
    length = 7500 if kind == "long form" else 3000
    sound = torch.randn(1, 8, length, generator=torch.Generator().manual_seed(1))
    more: dict[str, Any] = {"attention_mask": torch.ones(1, length, dtype=torch.long), "return_timestamps": True}
    if kind == "temperature fallback":
        more = {"temperature": (0.0, 0.4, 0.8), "logprob_threshold": -0.01, "compression_ratio_threshold": 1.0}
    captured, result, told = _capture(
        model, lambda: model.generate(sound, language="en", task="transcribe", max_new_tokens=12, **more)
    )
    assert told == []
    assert [len(run.sequences[0]) for run in captured] == [12, 12, 12]
    assert all(isinstance(run.events[-1], Finished) for run in captured)
    if kind == "long form":
        tokens = [token for run in captured for token in run.sequences[0]]
        assert set(result[0].tolist()) <= {*tokens, 50257, 50258, 50259, 50359}
    else:
        assert result[0].tolist()[-12:] == captured.run.sequences[0]
        assert [run.request.settings.get("do_sample", False) for run in captured] == [False, True, True]
    assert ("inputs", "input_features") in captured.run.request.call_facts


def test_inner_model_of_a_wrapper_is_recorded() -> None:
    small = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = Blip2Config(
        vision_config={**small, "intermediate_size": 16, "image_size": 28, "patch_size": 14},
        qformer_config={**small, "intermediate_size": 16, "encoder_hidden_size": 16, "vocab_size": 99},
        text_config={**small, "model_type": "opt", "ffn_dim": 16, "vocab_size": 99, "word_embed_proj_dim": 16,
                     "max_position_embeddings": 128, "bos_token_id": 2, "pad_token_id": 1, "eos_token_id": 3},
        num_query_tokens=4, image_token_index=90,
    )  # fmt: skip
    torch.manual_seed(0)
    model: Any = Blip2ForConditionalGeneration(config).eval()
    picture, ids = torch.randn(1, 3, 28, 28), torch.tensor([[90, 90, 90, 90, 5, 6]])
    captured, result, told = _capture(
        model, lambda: model.generate(pixel_values=picture, input_ids=ids, max_new_tokens=5)
    )
    assert told == []
    assert captured.run.sequences[0] == result[0, 6:].tolist()
    assert ("inputs", "inputs_embeds") in captured.run.request.call_facts
    assert not {"generate", "__reduce_ex__"} & (vars(model).keys() | vars(model.language_model).keys())


def greedy(model: Any, input_ids: torch.Tensor, generation_config: Any, **_: Any) -> torch.Tensor:
    """A plain loop."""
    for _step in range(generation_config.max_new_tokens):
        input_ids = torch.cat([input_ids, model(input_ids).logits[:, -1].argmax(-1)[:, None]], 1)
    return input_ids


def cached(model: Any, input_ids: torch.Tensor, generation_config: Any, **_: Any) -> torch.Tensor:
    """A loop with a cache."""
    read, cache = input_ids, None
    for _step in range(generation_config.max_new_tokens):
        out = model(read, cache=cache, use_cache=True)
        cache, read = out.cache, out.logits[:, -1].argmax(-1)[:, None]
        input_ids = torch.cat([input_ids, read], 1)
    return input_ids


def wider(model: Any, input_ids: torch.Tensor, generation_config: Any, **_: Any) -> torch.Tensor:
    """Generate with a loop that scores three candidates in a second, wider pass."""
    for _step in range(generation_config.max_new_tokens):
        best = model(input_ids).logits[:, -1].topk(3).indices[0]
        tried = torch.cat([input_ids.repeat(3, 1), best[:, None]], 1)
        score = model(tried).logits[:, -1].amax(-1)
        input_ids = torch.cat([input_ids, best[score.argmax()].reshape(1, 1)], 1)
    return input_ids


def guided(model: Any, input_ids: torch.Tensor, generation_config: Any, **_: Any) -> torch.Tensor:
    """A loop with a second pass without the prompt."""
    start = input_ids.shape[1]
    for _step in range(generation_config.max_new_tokens):
        scores = model(input_ids).logits[:, -1] * 2 - model(input_ids[:, start - 1 :]).logits[:, -1]
        input_ids = torch.cat([input_ids, scores.argmax(-1)[:, None]], 1)
    return input_ids


def drafted(model: Any, input_ids: torch.Tensor, generation_config: Any, **_: Any) -> torch.Tensor:
    """A loop that verifies two guessed tokens in each pass."""
    end = input_ids.shape[1] + generation_config.max_new_tokens
    while input_ids.shape[1] < end:
        tried = torch.cat([input_ids, input_ids[:, -2:]], 1)
        best = model(tried).logits.argmax(-1)[:, input_ids.shape[1] - 1 :]
        count = 0
        while count < 2 and best[0, count] == tried[0, input_ids.shape[1] + count]:
            count += 1
        input_ids = torch.cat([input_ids, best[:, : count + 1]], 1)
    return input_ids[:, :end]


def with_processors(
    model: Any, input_ids: torch.Tensor, logits_processor: Any, generation_config: Any, **_: Any
) -> torch.Tensor:
    """A loop that ignores the end token."""
    for _step in range(generation_config.max_new_tokens):
        scores = logits_processor(input_ids, model(input_ids).logits[:, -1].float())
        input_ids = torch.cat([input_ids, scores.argmax(-1)[:, None]], 1)
    return input_ids


LOOPS = [greedy, cached, wider, guided, drafted, with_processors]


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.__name__)
def test_own_loop_is_recorded_with_the_scores_of_its_passes(loop: Any) -> None:
    """Also after an end token, which the function ignores."""
    network = tiny.make("llama").model
    end = loop(network, IDS, GenerationConfig(max_new_tokens=6))[0, 4].item() if loop is not with_processors else 9
    captured, result, told = _capture(
        network, lambda: network.generate(IDS, custom_generate=loop, max_new_tokens=6, eos_token_id=end, pad_token_id=0)
    )
    assert told == []
    run = captured.run
    assert run.sequences == [result[0, 3:].tolist()]
    assert ("function", loop.__name__) in run.request.call_facts
    with torch.no_grad():
        expected = network(result).logits.log_softmax(-1)[0, 2:-1].gather(1, result[0, 3:, None])[:, 0].tolist()
    found = [event.raw_log_probability for event in run.events if isinstance(event, TokenChosen)]
    assert found == pytest.approx(expected, abs=1e-4)


def test_batch_of_an_own_loop_is_recorded_by_row() -> None:
    network = tiny.make("llama").model
    ids = torch.tensor([[5, 6, 7], [9, 8, 4]])
    captured, result, told = _capture(network, lambda: network.generate(ids, custom_generate=cached, max_new_tokens=4))
    assert told == []
    assert [run.sequences[0] for run in captured] == result[:, 3:].tolist()


def test_loop_that_no_pass_explains_gives_one_warning() -> None:
    def invent(model: Any, input_ids: torch.Tensor, **_: Any) -> torch.Tensor:
        model(input_ids)
        return torch.cat([input_ids, torch.tensor([[3, 4, 5]])], 1)

    def other(model: Any, input_ids: torch.Tensor, **_: Any) -> torch.Tensor:
        return torch.cat([input_ids, torch.tensor([[3, 4, 5]])], 1)

    network = tiny.make("llama").model
    _, _, told = _capture(network, lambda: network.generate(IDS, custom_generate=invent, max_new_tokens=4))
    assert len(told) == 1
    assert "one token per pass" in told[0]
    captured, _, told = _capture(network, lambda: network.generate(IDS, custom_generate=other, max_new_tokens=4))
    assert len(told) == len(captured.troubles) == 1
    assert "neither this model nor its generate" in told[0]


def test_changed_result_gives_one_warning() -> None:
    def changed(model: Any, input_ids: torch.Tensor, logits_processor: Any, generation_config: Any, **more: Any) -> Any:
        found = with_processors(model, input_ids, logits_processor, generation_config)
        found[0, -2] = 1 + found[0, -2] % 50
        return found

    network = tiny.make("llama").model
    _, _, told = _capture(network, lambda: network.generate(IDS, custom_generate=changed, max_new_tokens=4))
    assert len(told) == 1
    assert "other ids" in told[0]


def test_function_that_picks_one_of_several_texts_is_explained_by_them() -> None:
    def best_of(model: Any, input_ids: torch.Tensor, **_: Any) -> torch.Tensor:
        return [model.generate(input_ids, max_new_tokens=3, do_sample=True, pad_token_id=0) for _ in range(3)][1]

    network = tiny.make("llama").model
    captured, result, told = _capture(network, lambda: network.generate(IDS, custom_generate=best_of, max_new_tokens=3))
    assert told == []
    assert captured.runs[1].sequences[0] == result[0, 3:].tolist()


def test_criterion_that_ends_one_row_leaves_its_later_tokens() -> None:
    """Without an end token, `generate` writes on in all rows until all have ended."""
    network = tiny.make("llama").model
    network.generation_config.eos_token_id = None
    ids = torch.tensor([[5, 6, 7], [8, 9, 3]])

    def criterion(ids: torch.Tensor, scores: Any, **_: Any) -> torch.Tensor:
        return torch.tensor([ids.shape[1] >= 5, ids.shape[1] >= 8])

    captured, result, told = _capture(
        network, lambda: network.generate(ids, max_new_tokens=6, stopping_criteria=[criterion], pad_token_id=0)
    )
    assert told == []
    assert [run.sequences[0] for run in captured] == result[:, 3:].tolist()


def test_block_without_a_recorded_call_says_why() -> None:
    network, other = tiny.make("llama").model, tiny.make("llama").model
    with pytest.warns(RuntimeWarning, match="record_loop") as told, core.capture(network):
        [network(IDS) for _ in range(2)]
    assert "2 times" in str(told[0].message)
    assert [one.filename for one in told] == [__file__]
    with pytest.warns(RuntimeWarning, match="another instance"), core.capture(network):
        other.generate(IDS, max_new_tokens=2, pad_token_id=0)


def test_generate_batch_says_that_it_is_not_recorded() -> None:
    network = tiny.make("llama").model

    def generate_batch(*_: Any, **__: Any) -> dict[str, object]:
        return {}

    network.generate_batch = generate_batch
    with pytest.warns(RuntimeWarning, match="generate_batch") as told, core.capture(network):
        network.generate_batch([[5, 6]])
    assert len(told) == 1
    assert network.generate_batch is generate_batch


class Nested(LogitsProcessor):  # type: ignore[misc]
    """Generates inside a processor, and catches its failure."""

    def __init__(self, network: Any, fails: bool) -> None:
        self.network, self.fails = network, fails

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        def fail(ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
            raise KeyError("inner")

        try:
            more = {"logits_processor": [fail]} if self.fails else {}
            self.network.generate(IDS, max_new_tokens=1, pad_token_id=0, **more)
        except KeyError:
            pass
        return scores


@pytest.mark.parametrize("fails", [False, True])
def test_nested_calls_are_children_and_fail_alone(fails: bool, tmp_path: Path) -> None:
    network = tiny.make("llama").model
    captured, result, told = _capture(
        network,
        lambda: network.generate(IDS, max_new_tokens=3, pad_token_id=0, logits_processor=[Nested(network, fails)]),
    )
    assert told == []
    outer, *inner = captured.runs
    assert [run.parent for run in captured] == [None, 0, 0, 0]
    assert outer.failure is None
    assert outer.sequences == [result[0, 3:].tolist()]
    assert [isinstance(run.failure, KeyError) for run in inner] == [fails] * 3
    header = core.trace.read(inner[0].save(tmp_path / "inner.decodescope")).header
    assert header.extra["captured"] == {"id": inner[0].id, "parent": outer.id}


def test_failure_before_the_first_token_is_a_run_with_its_prompt() -> None:
    network = tiny.make("llama").model

    def fail(ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        raise KeyError("first")

    with core.capture(network) as captured:
        with pytest.raises(KeyError):
            network.generate(IDS, max_new_tokens=3, pad_token_id=0, logits_processor=[fail])
        with pytest.raises(ValueError, match="num_beams"):
            network.generate(IDS, max_new_tokens=3, pad_token_id=0, num_beams=2, num_return_sequences=3)
    for run in captured:
        assert [type(event) for event in run.events][:1] == [RunStarted]
        assert run.request.prompt == IDS[0].tolist()
        assert run.failure is not None
        assert run.sequences == [[]] * len(run.sequences)


def test_copy_inside_the_block_has_no_hooks() -> None:
    network = tiny.make("llama").model
    wrapper = torch.nn.ModuleList([network])
    before = vars(network).keys()
    with core.capture(network) as captured:
        network.generate(IDS, max_new_tokens=1, pad_token_id=0)
        twins = [copy.deepcopy(network), copy.deepcopy(wrapper)[0], pickle.loads(pickle.dumps(network))]
        for twin in twins:
            twin.generate(IDS, max_new_tokens=1, pad_token_id=0)
    for twin in twins:
        assert vars(twin).keys() == before
        assert not twin._forward_hooks
        assert twin.generation_config is not network.generation_config
    assert len(captured) == 1
