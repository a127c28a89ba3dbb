"""DoLa: contrast the final layer with the earlier layer that differs most from it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch

from decodescope.core.decoding.forward.forward_pass import ForwardOutput
from decodescope.core.decoding.processor_pipeline import ProcessorPipeline, StageHeading
from decodescope.core.decoding.run import DecodingRun
from decodescope.core.decoding.score_cache import StepLogits
from decodescope.core.decoding.step_replayer import StepReplayer
from decodescope.core.decoding.token_loop import GreedyPicker, MultinomialPicker, decode_single
from decodescope.core.errors import ParameterError, StrategyError
from decodescope.core.events import Event, LayerChoice, Method
from decodescope.core.models.loaded_model import LoadedModel
from decodescope.core.models.quantized.packed_layers import is_tied
from decodescope.resources.language import tr

Layers = str | int | Sequence[int]
""""low", "high", one layer or several."""
MIN_RELATIVE_PROBABILITY = 0.1
"""Exclude tokens below this fraction of the highest probability (the paper's adaptive plausibility constraint)."""
_IMPLAUSIBLE_LOG_PROBABILITY = -1e-3
"""Premature log-probability for tokens that the final layer finds implausible; they are excluded anyway."""


class LayerContrast:
    """Computes log p_final − log p_premature over plausible tokens (Chuang et al. 2023)."""

    heading = StageHeading("dola_layers", "DoLa", phrase="DoLa")

    def __init__(self, model: LoadedModel, layers: Layers) -> None:
        self._head = model.head
        self.layers = candidate_layers(layers, model.layers, is_tied(model.model))

    def apply(
        self, logits: torch.Tensor, hidden: tuple[torch.Tensor, ...], allowed: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return contrasted scores [B, V], and the divergence of each layer followed by the chosen one's index.

        `logits` are the final ones [B, V], `hidden` the states of all layers [B, T, D], `allowed` the logits with
        forbidden tokens at −∞.
        """
        if hidden[0].shape[-1] != hidden[-1].shape[-1] or hidden[-1].shape[-1] != self._head.weight.shape[-1]:
            raise StrategyError(
                tr("DoLa cannot run: this model's output head does not read its layers' hidden states."),
                tr("Choose another strategy or another model."),
            )
        premature = torch.stack([self._head(hidden[layer][:, -1]).float() for layer in self.layers])
        divergences = jensen_shannon(logits, premature).mean(-1)
        best = divergences.argmax(-1, keepdim=True)
        scores = contrast_layers(allowed, premature.index_select(0, best)[0])
        return scores, torch.cat([divergences, best.to(divergences.dtype)])

    def layer_choice(self, values: Sequence[float]) -> LayerChoice:
        """Return the chosen layer from the values of `apply`."""
        *divergences, best = values
        return LayerChoice(self.layers[int(best)], tuple(zip(self.layers, divergences, strict=True)))


def candidate_layers(setting: Layers, layers: int, is_tied_model: bool) -> list[int]:
    """Return the indices of hidden states to contrast with, by transformers' rule for `low`, `high` or a list.

    0 is the embedding output; with tied embeddings it would only repeat its input, so indices start at 2. Raises
    ParameterError.
    """
    first = 0 if not is_tied_model else 2 if layers > 2 else layers - 1
    half, reach = layers // 2, 20
    if setting == "low":
        chosen = list(range(first, half if layers <= 40 else reach, 2)) or [first]
    elif setting == "high":
        chosen = list(range(half if layers <= 40 else layers - reach, layers, 2))
    else:
        requested = [setting] if isinstance(setting, int) else setting
        chosen = [int(layer) for layer in requested if 0 <= int(layer) < layers]
    if not chosen:
        raise ParameterError(
            tr("dola_layers {setting!r} contains no layer below {layers}.").format(setting=setting, layers=layers),
            tr("Use “low”, “high” or a list of layers."),
            "dola_layers",
        )
    return chosen


def jensen_shannon(final: torch.Tensor, premature: torch.Tensor) -> torch.Tensor:
    """Return the Jensen–Shannon divergence in nats, [L, B], of logits `premature` [L, B, V] from `final` [B, V]."""
    p, q = torch.log_softmax(final, -1)[None], torch.log_softmax(premature, -1)
    middle = torch.logaddexp(p, q) - math.log(2)
    return 0.5 * (_kl(p, middle) + _kl(q, middle))


def _kl(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """Return KL(p ‖ q) of log-probabilities over the last dimension."""
    return (p.exp() * (p - q)).sum(-1)


def contrast_layers(final: torch.Tensor, premature: torch.Tensor) -> torch.Tensor:
    """Return log p_final − log p_premature [B, V]; −inf where the final layer finds a token implausible."""
    p, q = torch.log_softmax(final, -1), torch.log_softmax(premature, -1)
    implausible = p < p.amax(-1, keepdim=True) + math.log(MIN_RELATIVE_PROBABILITY)
    return (p - q.masked_fill(implausible, _IMPLAUSIBLE_LOG_PROBABILITY)).masked_fill(implausible, -math.inf)


def decode_dola(run: DecodingRun) -> Iterator[Event]:
    """Run greedy decoding or sampling on contrasted scores."""
    picker = MultinomialPicker() if run.settings.get("do_sample") else GreedyPicker()
    picker.method = _decoding_method(run)
    yield from decode_single(run, picker, _build_contrast(run))


def _decoding_method(run: DecodingRun) -> Method:
    return "dola_sampled" if run.settings.get("do_sample") else "dola"


def _build_contrast(run: DecodingRun) -> LayerContrast:
    layers: Layers = run.settings["dola_layers"]
    return LayerContrast(run.model, layers)


class DolaReplay(StepReplayer):
    """Replays a DoLa step."""

    needs_hidden_states = True

    def __init__(self, run: DecodingRun) -> None:
        super().__init__(run)
        self._contrast = _build_contrast(run)

    @property
    def method(self) -> Method:
        """The method that selects tokens."""
        return _decoding_method(self.run)

    def check(self) -> None:
        """Raise StrategyError where a processor acts before the contrast."""
        if any(stage.processor.before_contrast for stage in self.run.pipeline.stages):
            raise StrategyError(
                tr("A grammar acts before {strategy}'s contrast, and the hidden states for it were not kept.").format(
                    strategy=self._contrast.heading.label
                ),
                tr("Start a run with these settings instead."),
            )

    def has_same_input(self, other: StepReplayer) -> bool:
        """Return whether the other replayer contrasts the same layers."""
        return isinstance(other, DolaReplay) and other._contrast.layers == self._contrast.layers

    def pipeline_input(self, output: ForwardOutput) -> StepLogits:
        """Return the contrasted scores from the hidden states of all layers."""
        assert output.hidden is not None, "requested by `reads_layers`"
        raw = self.run.replace_invalid(output.last)
        contrasted, values = self._contrast.apply(raw, output.hidden, raw)
        return StepLogits(raw, contrasted, self._contrast.layer_choice(values.tolist()))

    def stage_headings(self, funnel: ProcessorPipeline) -> list[StageHeading]:
        """Put the contrast first."""
        return [self._contrast.heading, *super().stage_headings(funnel)]
