"""A reward model and its training (InstructGPT, section 3.5 and equation 1)."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

import torch
from safetensors import SafetensorError
from torch.nn import functional
from transformers import AutoModelForSequenceClassification, AutoTokenizer, DynamicCache, PreTrainedConfig

from decodescope.core.checks.arguments import cancel_event_or_new, check_folder, check_text, checked_texts
from decodescope.core.common.setting_values import to_plain_value
from decodescope.core.errors import PreferenceError
from decodescope.core.labs.arguments import check_lab_object, lab_object_list
from decodescope.core.labs.preference.dataset_files import bundled_rankings, read_rankings
from decodescope.core.labs.preference.events import LabEvent, RewardChecked, RewardStep
from decodescope.core.labs.preference.model_saving import reward_card
from decodescope.core.labs.preference.rankings import Ranking
from decodescope.core.labs.preference.tokenized_texts import PaddedTexts, pad_texts, prompt_ids, text_ids
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
from decodescope.core.models.text_decoder import cache_name
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from decodescope.core.labs.preference.rankings import Ranking

BATCH_SIZE = 16
"""Texts scored per batch."""


class _Classifier(Protocol):
    """The part of transformers' sequence classifiers that is used here."""

    score: torch.nn.Linear
    base_model: torch.nn.Module
    config: PreTrainedConfig

    def save_pretrained(self, folder: Path) -> None: ...


@dataclass(eq=False)
class RewardModel:
    """The classifier network, and the language model it was made from."""

    network: torch.nn.Module
    source: LoadedModel
    """The model whose tokenizer and context length it uses."""

    @property
    def classifier(self) -> _Classifier:
        """The network typed as a transformers sequence classifier."""
        return cast("_Classifier", self.network)

    def hidden(self, batch: PaddedTexts) -> torch.Tensor:
        """Return the states [B, L, D] that the head reads."""
        out = self.classifier.base_model(input_ids=batch.ids, attention_mask=batch.mask, use_cache=False)
        states: torch.Tensor = out.last_hidden_state
        return states

    def rewards(self, batch: PaddedTexts) -> torch.Tensor:
        """Return the reward [B] of each text, read at its last token."""
        states = self.hidden(batch)[torch.arange(len(batch.ids)), batch.last]
        return self._read(states)

    def shared_rewards(self, prompt: Sequence[int], completions: Sequence[Sequence[int]]) -> torch.Tensor:
        """Return the rewards [K] of several completions of one prompt, which is read once; the result equals `rewards`.

        Two to three times as fast for prompts longer than the completions; gradients flow through the cache.
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
        """Return the reward of each text of token ids."""
        found: list[float] = []
        for first in range(0, len(texts), BATCH_SIZE):
            found += self.rewards(pad_texts(texts[first : first + BATCH_SIZE])).tolist()
        return found


def new_reward_model(source: LoadedModel, seed: int = 0) -> RewardModel:
    """Build a reward model from the body of `source` and a new head with random weights from `seed`. Raises
    PreferenceError if transformers has no classifier of this architecture.
    """
    config = copy.deepcopy(source.model.config)
    config.num_labels, config.pad_token_id = 1, config.pad_token_id if config.pad_token_id is not None else 0
    try:
        network: Any = AutoModelForSequenceClassification.from_config(config)
    except ValueError as error:
        raise PreferenceError(
            tr("transformers has no reward model for the architecture of {model}.").format(model=source.name),
            tr("Choose a decoder-only model such as the bundled storyteller."),
        ) from error
    network.base_model.load_state_dict(source.model.base_model.state_dict())
    width = network.score.weight.shape[1]
    drawn = torch.randn(1, width, generator=torch.Generator().manual_seed(seed)) / (width + 1) ** 0.5
    with torch.no_grad():
        network.score.weight.copy_(drawn)
    return RewardModel(network.float().eval(), source)


def load_reward_model(folder: str | Path) -> RewardModel:
    """Load the reward model in that folder. Raises ParameterError, PreferenceError."""
    check_folder("folder", folder)
    path = Path(folder)
    try:
        network = AutoModelForSequenceClassification.from_pretrained(
            path, num_labels=1, dtype=torch.float32, local_files_only=True
        )  # fmt: skip
        tokenizer = AutoTokenizer.from_pretrained(path, local_files_only=True)
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        raise PreferenceError(
            tr("{folder} contains no readable reward model.").format(folder=path.name),
            tr("Train a reward model first."),
            str(error),
        ) from error
    return RewardModel(network.eval(), LoadedModel(network, tokenizer, path.name, path))


@dataclass(frozen=True, slots=True)
class TokenReward:
    """The reward of a text up to and including one token."""

    text: str
    reward: float


def score_tokens(model: RewardModel, prompt: str, completion: str) -> list[TokenReward]:
    """Return the reward after each token of the completion; the last is the text's. Raises ParameterError,
    PreferenceError.
    """
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
    """Rank the completions by the model's rewards. Raises ParameterError, PreferenceError."""
    from decodescope.core.labs.preference.rankings import Ranking

    check_lab_object("model", model, RewardModel)
    check_text("prompt", prompt)
    completions = checked_texts("completions", completions)
    rewards = model.score([text_ids(model.source, prompt, text) for text in completions])
    order = sorted(set(rewards), reverse=True)
    return Ranking(prompt, tuple(completions), tuple(order.index(one) + 1 for one in rewards))


RANKINGS_PER_STEP = 2
LEARNING_RATE = 2e-4
MAX_EVALUATIONS = 6
"""Maximum number of evaluations during a training."""


class TokenizedRanking(NamedTuple):
    """A tokenized ranking; its pairs are indices of its completions."""

    prompt: list[int]
    texts: tuple[list[int], ...]
    better: torch.Tensor
    """[pairs]"""
    worse: torch.Tensor
    """[pairs]"""


def train_reward(
    rankings: Sequence[Ranking] | str | Path | None = None,
    *,
    model: LoadedModel | str = "storyteller",
    folder: str | Path | None = None,
    steps: int | None = None,
    seed: int = 0,
    rate: float | None = None,
    cancel: threading.Event | None = None,
) -> Iterator[LabEvent]:
    """Train a reward model from `model` on rankings (the bundled ones, a JSONL file, or these) and save it in `folder`.

    Yields TrainingStarted, RewardStep for each update, RewardChecked now and then, and TrainingSaved or TrainingStopped
    at the end. One ranking in five is held out. `steps`: one pass over the rankings by default. Called again with the
    same settings, it resumes. Raises ParameterError, PreferenceError, ModelError, FileNotWrittenError.
    """
    cancel = cancel_event_or_new(cancel)
    steps, seed, rate = to_plain_value((steps, seed, rate))
    check_training(1 if steps is None else steps, seed, LEARNING_RATE if rate is None else rate)
    target_folder, known = writable_lab_folder(folder, "reward"), _load_rankings(rankings)
    source = load_source(model)
    with training_context(source):
        chosen = default_learning_rate(source, LEARNING_RATE) if rate is None else rate
        yield from _RewardTraining(known, source, target_folder, steps, seed, chosen, cancel).run()


def _load_rankings(rankings: Sequence[Ranking] | str | Path | None) -> list[Ranking]:
    if rankings is None:
        return bundled_rankings()
    return (
        read_rankings(rankings) if isinstance(rankings, (str, Path)) else lab_object_list("rankings", rankings, Ranking)
    )


def pairwise_loss(better: torch.Tensor, worse: torch.Tensor) -> torch.Tensor:
    """Return −mean log σ(r_better − r_worse) of rewards [pairs]."""
    return -functional.logsigmoid(better - worse).mean()


class _RewardTraining:
    """One reward model training run."""

    def __init__(
        self,
        rankings: Sequence[Ranking],
        source: LoadedModel,
        folder: Path,
        steps: int | None,
        seed: int,
        rate: float,
        cancel: threading.Event,
    ) -> None:
        learned, held = split_held_out(rankings)
        self._source, self._rate = source, rate
        self._train_rankings, self._held_out = _tokenize_rankings(source, learned), _tokenize_rankings(source, held)
        self._model = new_reward_model(source, seed)
        self._optimizer = torch.optim.AdamW(self._model.network.parameters(), lr=rate, weight_decay=0.0)
        total = steps if steps is not None else -(-len(self._train_rankings) // RANKINGS_PER_STEP)
        plan = {"rankings": digest(rankings), "steps": total, "seed": seed, "rate": rate}
        self._training = TrainingLoop(
            "reward", source, plan, total, self._model.network, self._optimizer, folder, cancel
        )  # fmt: skip
        self._seed = seed

    def run(self) -> Iterator[LabEvent]:
        """Run the training."""
        training = self._training
        yield training.resume(self._train_rankings, self._held_out)
        yield from training.steps(self._update)
        if training.is_done:
            yield from self._finish()

    def _update(self, step: int) -> Iterator[LabEvent]:
        chosen = self._step_rankings(step)
        set_learning_rate(self._optimizer, learning_rate_at(step, self._training.total, self._rate))
        losses = [pairwise_loss(*_rewards(self._model, one)) for one in chosen]
        loss = torch.stack(losses).mean()
        optimizer_step(self._optimizer, loss)
        yield RewardStep(step + 1, self._training.total, loss.item(), sum(len(one.better) for one in chosen))
        if (step + 1) % max(1, self._training.total // MAX_EVALUATIONS) == 0 and step + 1 < self._training.total:
            yield self._evaluate(step + 1)

    def _step_rankings(self, step: int) -> list[TokenizedRanking]:
        """Return the step's rankings: each is used once before any is used again."""
        each = min(RANKINGS_PER_STEP, len(self._train_rankings))
        begun, place = divmod(step * each, len(self._train_rankings))
        order = [
            *_shuffled_order(self._seed, begun, len(self._train_rankings)),
            *_shuffled_order(self._seed, begun + 1, len(self._train_rankings)),
        ]
        return [self._train_rankings[index] for index in order[place : place + each]]

    @torch.no_grad()
    def _evaluate(self, step: int) -> RewardChecked:
        found = [_rewards(self._model, one) for one in self._held_out]
        better, worse = (torch.cat(side) for side in zip(*found, strict=True))
        right = (better > worse).float().mean().item()
        return RewardChecked(step, self._training.total, pairwise_loss(better, worse).item(), right, len(better))

    def _finish(self) -> Iterator[LabEvent]:
        training = self._training
        checked = self._evaluate(training.total)
        yield checked
        card = reward_card(
            self._source, checked, len(self._train_rankings), training.total, self._seed, training.seconds
        )
        yield training.keep(self._model.classifier, card)


def _shuffled_order(seed: int, round_: int, count: int) -> list[int]:
    return torch.randperm(count, generator=torch.Generator().manual_seed(seed * 1009 + round_)).tolist()


def _tokenize_rankings(source: LoadedModel, rankings: Sequence[Ranking]) -> list[TokenizedRanking]:
    """Tokenize the rankings; those with only ties are dropped."""
    tokenized = (_tokenize_ranking(source, one) for one in rankings)
    found = [one for one in tokenized if len(one.better)]
    if not found:
        raise PreferenceError(
            tr("These rankings contain no pair, because all completions tie."),
            tr("Rank at least two completions of a prompt differently."),
        )
    return found


def _tokenize_ranking(source: LoadedModel, ranking: Ranking) -> TokenizedRanking:
    prompt = prompt_ids(source, ranking.prompt)
    places = range(len(ranking.ranks))
    sides = [(a, b) for a in places for b in places if ranking.ranks[a] < ranking.ranks[b]]
    better, worse = zip(*sides, strict=True) if sides else ((), ())
    texts = tuple(text_ids(source, ranking.prompt, text)[len(prompt) :] for text in ranking.completions)
    return TokenizedRanking(
        prompt, texts, torch.tensor(better, dtype=torch.long), torch.tensor(worse, dtype=torch.long)
    )


def _rewards(model: RewardModel, ranking: TokenizedRanking) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the rewards [pairs] of the better and the worse completions; each text is read once."""
    rewards = model.shared_rewards(ranking.prompt, ranking.texts)
    return rewards[ranking.better], rewards[ranking.worse]
