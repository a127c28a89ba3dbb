"""A reward model: a language model whose head gives one number, read at the last token (InstructGPT, section 3.5).

It is transformers' own `AutoModelForSequenceClassification` with one label, which is also what TRL reads; its folder is
a model folder like any other.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

import torch
from safetensors import SafetensorError
from transformers import AutoModelForSequenceClassification, AutoTokenizer, DynamicCache, PreTrainedConfig

from core.arguments import check_folder, check_text, checked_texts
from core.errors import PreferenceError
from core.labs.arguments import check_lab_object
from core.labs.preference.tokenized_texts import PaddedTexts, pad_texts, text_ids
from core.models.cache_name import cache_name
from core.models.loaded_model import LoadedModel
from resources.language import tr

if TYPE_CHECKING:
    from core.labs.preference.rankings import Ranking

BATCH_SIZE = 16
"""Texts that are scored at once."""


class _Classifier(Protocol):
    """What is used of transformers' sequence classifiers."""

    score: torch.nn.Linear
    base_model: torch.nn.Module
    config: PreTrainedConfig

    def save_pretrained(self, folder: Path) -> None: ...


@dataclass(eq=False)
class RewardModel:
    """The network, and the tokenizer of the model it was made from."""

    network: torch.nn.Module
    source: LoadedModel
    """The model whose tokenizer and limits it has."""

    @property
    def classifier(self) -> _Classifier:
        """The network by what transformers calls its parts."""
        return cast("_Classifier", self.network)

    def hidden(self, batch: PaddedTexts) -> torch.Tensor:
        """[B, L, D]: the states that its head reads."""
        out = self.classifier.base_model(input_ids=batch.ids, attention_mask=batch.mask, use_cache=False)
        states: torch.Tensor = out.last_hidden_state
        return states

    def rewards(self, batch: PaddedTexts) -> torch.Tensor:
        """[B]: the reward of each text, read at its last token."""
        states = self.hidden(batch)[torch.arange(len(batch.ids)), batch.last]
        return self._read(states)

    def shared_rewards(self, prompt: Sequence[int], completions: Sequence[Sequence[int]]) -> torch.Tensor:
        """[K]: the rewards of several completions of one prompt, which is read once; the same as `rewards`.

        Two to three times as quick where prompts are longer than completions; gradients flow through the cache.
        """
        if self.source.is_recurrent or not all(completions):
            return self.rewards(pad_texts([[*prompt, *text] for text in completions]))
        base, cache = self.classifier.base_model, DynamicCache()
        held = {cache_name(base): cache}
        base(input_ids=torch.tensor([list(prompt)]), use_cache=True, **held)
        cache.batch_repeat_interleave(len(completions))
        batch = pad_texts(completions)
        before = torch.ones(len(completions), len(prompt), dtype=torch.long)
        mask = torch.cat([before, batch.mask], dim=1)
        out = base(input_ids=batch.ids, attention_mask=mask, use_cache=True, **held)
        return self._read(out.last_hidden_state[torch.arange(len(batch.ids)), batch.last])

    def _read(self, states: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.classifier.score(states)
        return found.squeeze(-1)

    @torch.no_grad()
    def score(self, texts: Sequence[Sequence[int]]) -> list[float]:
        """The reward of each text of token ids."""
        found: list[float] = []
        for first in range(0, len(texts), BATCH_SIZE):
            found += self.rewards(pad_texts(texts[first : first + BATCH_SIZE])).tolist()
        return found


def new_reward_model(source: LoadedModel, seed: int = 0) -> RewardModel:
    """The body of `source` with a new head, drawn by `seed`. Raises PreferenceError where transformers has none."""
    config = copy.deepcopy(source.model.config)
    config.num_labels, config.pad_token_id = 1, config.pad_token_id if config.pad_token_id is not None else 0
    try:
        network: Any = AutoModelForSequenceClassification.from_config(config)
    except ValueError as error:
        raise PreferenceError(
            tr("transformers has no reward model of the kind of {model}.").format(model=source.name),
            tr("Choose a decoder such as the bundled storyteller."),
        ) from error
    network.base_model.load_state_dict(source.model.base_model.state_dict())
    width = network.score.weight.shape[1]
    drawn = torch.randn(1, width, generator=torch.Generator().manual_seed(seed)) / (width + 1) ** 0.5
    with torch.no_grad():
        network.score.weight.copy_(drawn)
    return RewardModel(network.float().eval(), source)


def load_reward_model(folder: str | Path) -> RewardModel:
    """The reward model that lies there. Raises ParameterError, PreferenceError."""
    check_folder("folder", folder)
    path = Path(folder)
    try:
        network = AutoModelForSequenceClassification.from_pretrained(
            path, num_labels=1, dtype=torch.float32, local_files_only=True
        )  # fmt: skip
        tokenizer = AutoTokenizer.from_pretrained(path, local_files_only=True)
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        raise PreferenceError(
            tr("{folder} holds no reward model that can be read.").format(folder=path.name),
            tr("Train one first."),
            str(error),
        ) from error
    return RewardModel(network.eval(), LoadedModel(network, tokenizer, path.name, path))


@dataclass(frozen=True, slots=True)
class TokenReward:
    """What a reward model thinks of a text up to and with one token."""

    text: str
    reward: float


def score_tokens(model: RewardModel, prompt: str, completion: str) -> list[TokenReward]:
    """The reward after each token of the completion; the last is the text's. Raises ParameterError, PreferenceError."""
    check_lab_object("model", model, RewardModel)
    check_text("prompt", prompt)
    check_text("completion", completion)
    ids = text_ids(model.source, prompt, completion)
    before = len(text_ids(model.source, prompt, ""))
    with torch.no_grad():
        found = model.classifier.score(model.hidden(pad_texts([ids])))[0, :, 0].tolist()
    pieces = model.source.pieces
    return [TokenReward(pieces[token], reward) for token, reward in zip(ids[before:], found[before:], strict=True)]


def rank_completions(model: RewardModel, prompt: str, completions: Sequence[str]) -> Ranking:
    """The completions with the ranks that the model gives them. Raises ParameterError, PreferenceError."""
    from core.labs.preference.rankings import Ranking

    check_lab_object("model", model, RewardModel)
    check_text("prompt", prompt)
    completions = checked_texts("completions", completions)
    rewards = model.score([text_ids(model.source, prompt, text) for text in completions])
    order = sorted(set(rewards), reverse=True)
    return Ranking(prompt, tuple(completions), tuple(order.index(one) + 1 for one in rewards))
