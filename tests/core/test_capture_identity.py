"""Call recorded with a captured run: prompt, random numbers, weights, adapters, processors; its repetition."""

from __future__ import annotations

import copy
import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import LogitsProcessor, StoppingCriteria, WatermarkingConfig

from decodescope import core
from decodescope.core.common.generator_state import decode_state, encode_state
from decodescope.core.events import Notice, RunStarted, TokenChosen
from decodescope.core.generate_recording.call_facts import describe_object
from decodescope.core.models.weight_samples import differs_from_files, hash_weights
from tests.core import tiny

PROMPT = [1, 17, 34, 11, 44, 32, 17, 34, 11]
CALLS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "sampling": {"do_sample": True, "temperature": 0.9, "top_p": 0.9},
    "sampling with defaults": {"do_sample": True},
    "several texts": {"do_sample": True, "num_return_sequences": 3},
    "beams": {"num_beams": 3, "num_return_sequences": 2, "length_penalty": 0.5},
    "beam sampling": {"num_beams": 3, "do_sample": True, "top_k": 20},
    "prompt lookup": {"prompt_lookup_num_tokens": 3},
    "maximum length": {"max_length": 14, "max_new_tokens": None},
    "penalties": {"repetition_penalty": 1.3, "no_repeat_ngram_size": 2, "suppress_tokens": [17]},
}


def _generate(network: Any, **settings: Any) -> torch.Tensor:
    ids = torch.tensor([PROMPT])
    found: torch.Tensor = network.generate(
        ids, attention_mask=torch.ones_like(ids), **{"max_new_tokens": 6, "pad_token_id": 0, **settings}
    )
    return found


def _started(run: core.Result) -> RunStarted:
    started = run.events[0]
    assert isinstance(started, RunStarted)
    return started


@pytest.mark.every(3)
@pytest.mark.parametrize("title", CALLS)
@pytest.mark.parametrize("name", ["llama", "t5", "bart", "gpt2"])
def test_run_of_a_captured_request_gives_the_same_ids(name: str, title: str) -> None:
    """Also of the second and third call after one seed."""
    model = tiny.make(name)
    torch.manual_seed(7)
    with core.capture(model) as captured:
        for _ in range(3):
            _generate(model.model, **CALLS[title])
    for run in captured:
        assert not run.why_not_repeated
        assert run.request.prompt == PROMPT
        again = core.run(model, run.request)
        assert again.sequences == run.sequences
        assert not [event for event in again.events if isinstance(event, Notice) and event.kind == "not_repeatable"]
        assert _started(again).generator == _started(run).generator


def test_recorded_seed_is_the_generators_only_at_its_start() -> None:
    model = tiny.make("llama")
    torch.manual_seed(7)
    with core.capture(model) as captured:
        for _ in range(3):
            _generate(model.model, do_sample=True)
    requests = [run.request for run in captured]
    assert [request.seed for request in requests] == [7, 0, 0]
    assert [bool(request.generator_state) for request in requests] == [False, True, True]
    assert requests[1].generator_state != requests[2].generator_state
    assert [core.explain_call_facts(_started(run).call_facts) for run in captured] == [[], [], []]
    first, second, _ = (core.seed_text(_started(run)) for run in captured)
    assert first == "7"
    assert "state" in second


def test_state_of_another_device_is_refused() -> None:
    model = tiny.make("llama")
    request = core.Request(PROMPT, {"do_sample": True}, generator_state=encode_state(b"1234567890123456"))
    with pytest.raises(core.errors.ParameterError, match="state of the random generator"):
        core.run(model, request)
    assert decode_state(encode_state(b"abc")) == b"abc"
    for text in ("!", "abcd", encode_state(bytes(10_000))[:-8]):
        with pytest.raises(core.errors.ParameterError):
            core.run(model, dataclasses.replace(request, generator_state=text))


class Shift(LogitsProcessor):  # type: ignore[misc]
    """Raises one token."""

    def __init__(self, token: int, amount: float = 1.5) -> None:
        self.token, self._amount = token, amount

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        scores[:, self.token] += self._amount
        return scores


class Never(StoppingCriteria):  # type: ignore[misc]
    """Ends no text."""

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        return torch.zeros(len(input_ids), dtype=torch.bool)


def test_call_with_own_processors_and_criteria_is_refused_by_their_names() -> None:
    model = tiny.make("llama")
    with core.capture(model) as captured:
        _generate(model.model, logits_processor=[Shift(3)], stopping_criteria=[Never()])
    run = captured.run
    assert ("processor", "Shift(token=3, amount=1.5)") in run.request.call_facts
    assert ("criterion", "Never()") in run.request.call_facts
    assert "Shift(token=3, amount=1.5)" in run.why_not_repeated
    with pytest.raises(core.errors.ParameterError, match="Shift") as caught:
        core.run(model, run.request)
    assert "call_facts" in caught.value.remedy
    without = dataclasses.replace(run.request, call_facts=())
    assert len(core.run(model, without).sequences[0]) == 6
    assert "Shift(token=3" in core.as_code(run.request, model=model).partition("import")[0]


def test_prompts_sampled_together_are_said_not_to_be_repeatable() -> None:
    model = tiny.make("llama")
    with core.capture(model) as captured:
        model.model.generate(torch.tensor([PROMPT, PROMPT]), max_new_tokens=3, do_sample=True, pad_token_id=0)
    assert ("rows", "2") in captured.run.request.call_facts
    [notice] = [event for event in core.run(model, captured.run.request).events if isinstance(event, Notice)]
    assert notice.kind == "not_repeatable"


def test_inputs_besides_ids_are_refused_by_name() -> None:
    model = tiny.make("llama")
    with core.capture(model) as captured:
        states = model.model.get_input_embeddings()(torch.tensor([PROMPT])).detach()
        model.model.generate(inputs_embeds=states, max_new_tokens=3, pad_token_id=0)
    with pytest.raises(core.errors.ParameterError, match="inputs_embeds"):
        core.run(model, captured.run.request)


def test_change_of_the_weights_changes_the_hash_and_is_said() -> None:
    model = tiny.make("llama")
    with core.capture(model) as captured:
        _generate(model.model)
    before = _started(captured.run)
    assert before.identity is not None
    assert before.identity.memory_hash
    with torch.no_grad():
        model.model.lm_head.weight[5, 5] += 1
    [notice] = [event for event in core.run(model, captured.run.request).events if isinstance(event, Notice)]
    assert "weights" in notice.message
    assert hash_weights(model.model) != before.identity.memory_hash


def test_weights_other_than_in_the_files_are_said() -> None:
    model = core.load("storyteller")
    assert isinstance(model, core.LoadedModel)
    assert model.path is not None
    assert not differs_from_files(model.model, model.path)
    network = copy.deepcopy(model.model)
    with torch.no_grad():
        network.lm_head.weight[5, 5] += 1
    for one, expected in ((model.model, False), (network, True)):
        with core.capture(one) as captured:
            one.generate(torch.tensor([[1, 420]]), max_new_tokens=1)
        assert any(kind == "files" for kind, _ in captured.run.request.call_facts) is expected


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_active_and_merged_adapters_are_named() -> None:
    peft = pytest.importorskip("peft")
    network = tiny.make("llama").model
    wrapped = peft.get_peft_model(network, peft.LoraConfig(target_modules=["q_proj"]), adapter_name="mine").eval()

    def adapters() -> list[tuple[str, float]]:
        with core.capture(wrapped) as captured:
            wrapped.generate(input_ids=torch.tensor([PROMPT]), max_new_tokens=1, pad_token_id=0)
        return [(one.name, one.strength) for one in _started(captured.run).adapters]

    assert adapters() == [("mine", 1.0)]
    with wrapped.disable_adapter():
        assert adapters() == []
    wrapped.merge_adapter()
    assert adapters() == [("mine", 1.0)]


def test_special_tokens_of_a_prompt_are_not_added_again(tmp_path: Path) -> None:
    model = core.load("storyteller")
    assert isinstance(model, core.LoadedModel)
    inputs = model.tokenizer("Once upon a time", return_tensors="pt")
    torch.manual_seed(1)
    torch.rand(1)
    with core.capture(model) as captured:
        model.model.generate(**inputs, max_new_tokens=5, do_sample=True)
    run = captured.run
    assert run.request.prompt == inputs["input_ids"][0].tolist()
    for flavour in ("transformers", "core"):
        code = core.as_code(run.request, flavour, model=model)  # type: ignore[arg-type]
        found: dict[str, Any] = {}
        exec(code, found)
        ids = (
            found["outputs"][0, len(run.request.prompt) :].tolist()
            if "outputs" in found
            else found["result"].sequences[0]
        )
        assert ids == run.sequences[0]
    path = run.save(tmp_path / "run.decodescope")
    assert core.trace.read(path).header.request["prompt"] == run.request.prompt
    assert list(core.replay(path)) == run.events


def test_settings_of_the_model_that_a_call_replaces_are_part_of_the_request() -> None:
    model = tiny.make("llama")
    model.model.generation_config.repetition_penalty = 1.9
    with core.capture(model) as captured:
        _generate(model.model, repetition_penalty=1.0)
    assert core.run(model, captured.run.request).sequences == captured.run.sequences


@pytest.mark.parametrize(
    ("value", "name"),
    [(Shift(3, 2.0), "Shift(token=3, amount=2.0)"), (len, "len"), (Never(), "Never()")],
)
def test_objects_are_described_by_class_and_arguments(value: object, name: str) -> None:
    assert describe_object(value) == name


class Masks(LogitsProcessor):  # type: ignore[misc]
    """Bans a token by the lowest number, at every second step."""

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        scores = scores.clone()
        if input_ids.shape[1] % 2:
            scores[:, 5] = torch.finfo(scores.dtype).min
        return scores


class Double(LogitsProcessor):  # type: ignore[misc]
    """Returns scores of 64 bits."""

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        return scores.double() * 2


def test_processor_that_masks_is_a_ban_at_every_step() -> None:
    model = tiny.make("llama")
    with core.capture(model) as captured:
        _generate(model.model, logits_processor=[Masks(), Double()])
    kinds = [[s.kind for s in e.funnel] for e in captured.run.events if isinstance(e, TokenChosen)]
    assert kinds == [["model", "ban", "shift"]] * 6
    masked = [e.funnel[1].survivors for e in captured.run.events if isinstance(e, TokenChosen)]
    assert masked == [tiny.VOCABULARY - 1, tiny.VOCABULARY] * 3


def test_reprs_are_short() -> None:
    model = tiny.make("llama")
    with core.capture(model) as captured:
        _generate(model.model, do_sample=True)
        _generate(model.model, do_sample=True)
    run = core.run(model, core.Request(list(range(1, 60)) * 2, {"max_new_tokens": 40}))
    values = (
        run,
        captured,
        captured.run,
        captured.run.request,
        model,
        core.score(model, PROMPT),
        core.lens(model, PROMPT, 3),
    )
    assert [len(repr(value)) for value in values if len(repr(value)) > 300] == []


def test_stages_of_captured_beams_have_the_names_of_own_processors() -> None:
    model = tiny.make("llama")
    with core.capture(model) as captured:
        _generate(model.model, num_beams=3, logits_processor=[Masks()], repetition_penalty=1.2)
    steps = [event for event in captured.run.events if isinstance(event, core.events.BeamStep)]
    assert len(steps[0].funnels) == 1
    assert all(step.funnels for step in steps)
    kinds = {tuple((stage.name, stage.kind) for stage in one.stages) for step in steps for one in step.funnels}
    assert kinds == {(("raw", "model"), ("repetition_penalty", "shift"), ("Masks", "ban"))}


@pytest.mark.parametrize(
    "settings",
    [{"sequence_bias": {(17, 34): -5.0, (3,): 2.0}}, {"watermarking_config": WatermarkingConfig(bias=3.0)},
     {"bad_words_ids": [[3], [17, 34]]}, {"eos_token_id": [2, 11]}, {"guidance_scale": 1.5}],
    ids=lambda settings: next(iter(settings)),
)  # fmt: skip
def test_settings_of_all_forms_are_repeated(settings: dict[str, Any]) -> None:
    model = tiny.make("llama")
    with core.capture(model) as captured:
        _generate(model.model, do_sample=True, **settings)
    assert not captured.run.why_not_repeated
    assert core.run(model, captured.run.request).sequences == captured.run.sequences


def test_negative_prompt_is_refused_by_name() -> None:
    model = tiny.make("llama")
    with core.capture(model) as captured:
        _generate(model.model, guidance_scale=1.5, negative_prompt_ids=torch.tensor([[3, 4]]))
    with pytest.raises(core.errors.ParameterError, match="negative_prompt_ids"):
        core.run(model, captured.run.request)
