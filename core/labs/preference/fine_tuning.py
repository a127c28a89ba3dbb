"""Supervised fine-tuning: train the model on given answers (InstructGPT, step 1)."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.nn import functional

from decodescope.core.checks.arguments import argument_error, cancel_event_or_new, check_path, check_text
from decodescope.core.common.setting_values import to_plain_value
from decodescope.core.errors import PreferenceError
from decodescope.core.labs.arguments import lab_object_list
from decodescope.core.labs.preference.dataset_files import (
    BUNDLED_RANKINGS,
    WrongDatasetError,
    is_ranking,
    normalize_example,
    read_json_lines,
)
from decodescope.core.labs.preference.events import LabEvent, SftChecked, SftStep
from decodescope.core.labs.preference.model_saving import sft_card
from decodescope.core.labs.preference.tokenized_texts import ChatTurn, chat_ids, pad_texts, prompt_ids, text_ids
from decodescope.core.labs.preference.training_arguments import check_training, writable_lab_folder
from decodescope.core.labs.preference.training_loop import (
    TrainingLoop,
    default_learning_rate,
    digest,
    learning_rate_at,
    load_source,
    optimizer_step,
    set_learning_rate,
    split_held_out,
    training_context,
)
from decodescope.core.models.loaded_model import LoadedModel
from decodescope.resources.language import tr

BUNDLED_CHATS = BUNDLED_RANKINGS.with_name("chats.jsonl")
"""Chat examples that ship with the program."""
EXAMPLES_PER_STEP = 8
LEARNING_RATE = 1e-3
"""Learning rate for the tiny bundled models; `default_learning_rate` lowers it for larger ones."""


class Example(NamedTuple):
    """A prompt and the answer to learn: a text and its continuation, or the turns of a chat."""

    prompt: str | tuple[ChatTurn, ...]
    completion: str


class _TokenizedExample(NamedTuple):
    """An example as token ids; the first `prompt_length` of them are the prompt."""

    ids: list[int]
    prompt_length: int


def sft(
    examples: Sequence[Example] | str | Path | None = None,
    *,
    model: LoadedModel | str = "storyteller",
    folder: str | Path | None = None,
    steps: int = 40,
    seed: int = 0,
    rate: float | None = None,
    cancel: threading.Event | None = None,
) -> Iterator[LabEvent]:
    """Fine-tune a copy of `model` on examples (the bundled chats, a JSONL file, or these) and save it in `folder`.

    Yields TrainingStarted, SftChecked before the first step, SftStep for each step, SftChecked, TrainingSaved; or
    TrainingStopped. One example in five is held out. `rate`: the learning rate (default: chosen by model size). Called
    again with the same settings, it resumes. Raises ParameterError, PreferenceError, ModelError, FileNotWrittenError.
    """
    cancel = cancel_event_or_new(cancel)
    steps, seed, rate = to_plain_value((steps, seed, rate))
    check_training(steps, seed, LEARNING_RATE if rate is None else rate)
    target_folder, known = (
        writable_lab_folder(folder, "sft"),
        _load_examples(BUNDLED_CHATS if examples is None else examples),
    )
    source = load_source(model)
    with training_context(source):
        chosen = default_learning_rate(source, LEARNING_RATE) if rate is None else rate
        yield from _SftTraining(known, source, target_folder, steps, seed, chosen, cancel).run()


def _load_examples(examples: Sequence[Example] | str | Path) -> list[Example]:
    if isinstance(examples, (str, Path)):
        return read_examples(examples)
    found = lab_object_list("examples", examples, Example)
    if not found:
        raise argument_error("examples", examples, tr("Pass at least one."))
    for one in found:
        _validate_example(one)
    return found


def _validate_example(example: Example) -> None:
    """Raise ParameterError if the example is invalid."""
    prompt = example.prompt
    is_chat = isinstance(prompt, (list, tuple)) and all(map(_is_turn, prompt))
    if not (isinstance(prompt, str) or is_chat) or not prompt:
        raise argument_error("prompt", prompt, tr("Pass a text, or a list of turns with “role” and “content”."))
    for text in [prompt] if isinstance(prompt, str) else [turn["content"] for turn in prompt]:
        check_text("prompt", text)
    check_text("completion", example.completion)
    if not example.completion:
        raise argument_error("completion", example.completion, tr("Pass a text."))


def read_examples(path: str | Path) -> list[Example]:
    """Read the examples of a JSONL file. Raises ParameterError, or PreferenceError naming the line."""
    check_path("path", path)
    found = read_json_lines(Path(path), _parse_example, _format_remedy())
    if not found:
        raise PreferenceError(tr("{file} contains no examples.").format(file=Path(path).name), _format_remedy())
    return found


def _parse_example(line_values: Mapping[str, object]) -> Example:
    if is_ranking(line_values):
        raise WrongDatasetError(
            tr("This is a ranking of answers, not an example for fine-tuning."),
            tr("Use the file for a reward model instead, or provide “prompt” and “completion”."),
        )
    values = normalize_example(line_values)
    if "messages" in values:
        *turns, last = _parse_turns(values["messages"])
        return Example(tuple(turns), last["content"])
    prompt, completion = values.get("prompt"), values.get("completion")
    if not (isinstance(prompt, str) and isinstance(completion, str) and prompt and completion):
        raise PreferenceError(tr("“prompt” and “completion” must be texts."), _format_remedy())
    return Example(prompt, completion)


def _parse_turns(messages: object) -> list[ChatTurn]:
    """Return at least two turns that end with the assistant's. Raises PreferenceError."""
    given = messages if isinstance(messages, list) else []
    turns = [ChatTurn(role=one["role"], content=one["content"]) for one in given if _is_turn(one)]
    if len(turns) < len(given) or len(turns) < 2 or turns[-1]["role"] != "assistant":
        raise PreferenceError(
            tr("“messages” must be turns with “role” and “content”, ending with the assistant's."),
            _format_remedy(),
        )
    return turns


def _is_turn(one: object) -> bool:
    return isinstance(one, dict) and all(isinstance(one.get(key), str) for key in ("role", "content"))


def _format_remedy() -> str:
    return tr(
        "Each line is a JSON object with “prompt” and “completion”, with “messages” (OpenAI), with “conversations” "
        "(ShareGPT), or with “instruction” and “output” (Alpaca)."
    )


class _SftTraining:
    """One supervised fine-tuning run."""

    def __init__(
        self,
        examples: Sequence[Example],
        source: LoadedModel,
        folder: Path,
        steps: int,
        seed: int,
        rate: float,
        cancel: threading.Event,
    ) -> None:
        read = [_tokenize_example(source, one) for one in examples]
        self._train_examples, self._held_out = split_held_out(read)
        self._source, self._seed, self._rate = source, seed, rate
        self._network: Any = copy.deepcopy(source.model).train(False).requires_grad_(True)
        self._optimizer = torch.optim.AdamW(self._network.parameters(), lr=rate, weight_decay=0.0)
        plan = {"examples": digest(examples), "steps": steps, "seed": seed, "rate": rate}
        self._training = TrainingLoop("sft", source, plan, steps, self._network, self._optimizer, folder, cancel)

    def run(self) -> Iterator[LabEvent]:
        """Run the training."""
        training = self._training
        yield training.resume(self._train_examples, self._held_out)
        if not training.step:
            yield self._evaluate(0)
        yield from training.steps(self._update)
        if training.is_done:
            checked = self._evaluate(training.total)
            yield checked
            card = sft_card(self._source, checked, len(self._train_examples), self._seed, training.seconds)
            yield training.keep(self._network, card)

    def _update(self, step: int) -> Iterator[LabEvent]:
        generator = torch.Generator().manual_seed(self._seed * 100_003 + step)
        places = torch.randperm(len(self._train_examples), generator=generator)[:EXAMPLES_PER_STEP].tolist()
        set_learning_rate(self._optimizer, learning_rate_at(step, self._training.total, self._rate))
        loss, tokens = _summed_loss(self._network, [self._train_examples[place] for place in places])
        optimizer_step(self._optimizer, loss / tokens)
        yield SftStep(step + 1, self._training.total, loss.item() / tokens, tokens)

    @torch.no_grad()
    def _evaluate(self, step: int) -> SftChecked:
        starts = range(0, len(self._held_out), EXAMPLES_PER_STEP)
        parts = [_summed_loss(self._network, self._held_out[at : at + EXAMPLES_PER_STEP]) for at in starts]
        return SftChecked(step, self._training.total, sum(loss.item() for loss, _ in parts) / sum(n for _, n in parts))


def _summed_loss(network: Any, examples: Sequence[_TokenizedExample]) -> tuple[torch.Tensor, int]:
    """Return the summed loss of the answers' tokens in nats, and their number."""
    batch = pad_texts([one.ids for one in examples])
    logits = network(input_ids=batch.ids, attention_mask=batch.mask, use_cache=False).logits[:, :-1].float()
    places = torch.arange(1, batch.ids.shape[1])
    answered = batch.mask[:, 1:].bool() & (places >= torch.tensor([[one.prompt_length] for one in examples]))
    loss = functional.cross_entropy(logits[answered], batch.ids[:, 1:][answered], reduction="sum")
    return loss, int(answered.sum())


def _tokenize_example(model: LoadedModel, example: Example) -> _TokenizedExample:
    if isinstance(example.prompt, str):
        ids = text_ids(model, example.prompt, example.completion)
        return _TokenizedExample(ids, len(prompt_ids(model, example.prompt)))
    prompt_tokens = chat_ids(model, example.prompt)
    answer = ChatTurn(role="assistant", content=example.completion)
    return _TokenizedExample(chat_ids(model, (*example.prompt, answer), with_answer=True), len(prompt_tokens))
