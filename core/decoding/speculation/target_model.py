"""The target during speculation: scores of all nodes of a round, from one pass."""

from __future__ import annotations

import numpy as np
import torch

from core.caches.tensors import cache_editing
from core.caches.tensors.layouts import roomy
from core.decoding.forward.forward_pass import Forward, ForwardOutput
from core.decoding.run import DecodingRun
from core.decoding.speculation.drafters.lookahead import LookaheadBranch
from core.decoding.speculation.node_processors import NodeFunnel
from core.decoding.speculation.speculation_text import SpeculationText
from core.decoding.speculation.tree import DraftTree
from core.decoding.speculation.tree_passes import TreePasses, last_states
from core.errors import ParameterError
from resources.language import tr


def _check_together(run: DecodingRun) -> None:
    """Raises ParameterError for a stage that must see each token drawn before it judges the next."""
    for stage in run.funnel.stages:
        if stage.processor.in_turn:
            title = tr(stage.processor.parameter.title) if stage.processor.parameter else stage.name
            cause = tr("{setting} follows every token drawn, and drafted tokens are judged several at once.")
            remedy = tr("Switch {setting} off, or choose a strategy without drafts.")
            raise ParameterError(cause.format(setting=title), remedy.format(setting=title), stage.name)


class TargetModel:
    """The run's model with its cache, which is rolled back after every round, and its funnel.

    Guidance (CFG) needs a second reading of every node without the prompt; it keeps a cache of its own in step.
    """

    def __init__(self, run: DecodingRun) -> None:
        _check_together(run)
        self._run = run
        self.passes = TreePasses(run.forward)
        guides = [stage for stage in run.funnel.stages if stage.processor.reads]
        self.funnel = NodeFunnel(stage for stage in run.funnel.stages if not stage.processor.reads)
        self.names = [stage.heading for stage in (*guides, *self.funnel.stages)]
        self._guide = _Guide(run) if guides else None

    def first(self, output: ForwardOutput, text: SpeculationText) -> list[torch.Tensor]:
        """Scores behind the prompt: raw and after every stage, each [1, V]."""
        cache_editing.show_text_only(self._run.forward.cache, True)
        self.passes.length = len(text)
        if self.passes.features is not None:
            self.passes.features.text(last_states(output)[:, -len(text) :])  # less what stands for pictures
        raw = self._run.repair(output.last)
        scores = [raw] if self._guide is None else [raw, self._guide.first(raw, text)]
        return [*scores, *self.funnel.trace([text.tensor], scores[-1])[1:]]

    def step(self, text: SpeculationText) -> list[torch.Tensor]:
        """Read the text's last token for good; scores behind it, each [1, V]."""
        ids = text.last
        raw = self._run.repair(self.passes.text(ids))
        scores = [raw] if self._guide is None else [raw, self._guide.step(raw, ids)]
        if not self.funnel.stages:
            return scores
        return [*scores, *self.funnel.trace([text.tensor], scores[-1])[1:]]

    def score(self, text: SpeculationText, tree: DraftTree, rider: LookaheadBranch | None = None) -> list[torch.Tensor]:
        """Scores behind every node, each [N, V]; a rider's rows ride along and are told their choices."""
        ids = torch.tensor([tree.ids], device=self._run.device)
        raw = self.passes.nodes(ids, tree.depths, tree.sees()) if rider is None else self._with(rider, text, tree)
        raw = self._run.repair(raw)
        scores = [raw] if self._guide is None else [raw, self._guide.nodes(raw, ids, tree)]
        return [*scores, *self.funnel.tree(text.tensor, tree, scores[-1])[1:]]

    def _with(self, rider: LookaheadBranch, text: SpeculationText, tree: DraftTree) -> torch.Tensor:
        """One pass over tree and riders; the tree's logits [N, V]."""
        riders, nodes = rider.ride(text), len(tree)
        ids = torch.tensor([[*tree.ids, *riders.ids]], device=self._run.device)
        sees = np.zeros((ids.shape[1], ids.shape[1]), dtype=np.bool_)
        sees[:nodes, :nodes], sees[nodes:, nodes:] = tree.sees(), riders.sees
        sees[nodes:, 0] = True
        logits = self.passes.nodes(ids, [*tree.depths, *riders.depths], sees)
        rider.rode(logits[nodes:].argmax(-1).tolist())
        return logits[:nodes]

    def settle(self, path: list[int]) -> None:
        """Keep root and accepted path."""
        self.passes.settle([0, *path])
        if self._guide:
            self._guide.passes.settle([0, *path])

    def crop(self, length: int) -> None:
        """Cut the cache to the first `length` tokens of the text and leave it as any other run would."""
        surplus = self.passes.length - length
        self.passes.crop(length)
        cache_editing.show_text_only(self._run.forward.cache, False)
        if self._guide:
            self._guide.passes.crop(self._guide.passes.length - max(surplus, 0))


class _Guide:
    """The reading without the prompt (or with a negative one) that guidance steers away from."""

    def __init__(self, run: DecodingRun) -> None:
        self._negative = run.context.negative_ids
        self._scale = float(run.config.guidance_scale)
        self.passes = TreePasses(Forward(run.model, roomy(run.model)))

    def first(self, raw: torch.Tensor, text: SpeculationText) -> torch.Tensor:
        """Guided scores behind the prompt, [1, V]."""
        return self.step(raw, text.tensor[:, -1:] if self._negative is None else self._negative[:1])

    def step(self, raw: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        """Guided scores behind text tokens [1, n], [1, V]."""
        return self._steer(raw, self.passes.text(ids))

    def nodes(self, raw: torch.Tensor, ids: torch.Tensor, tree: DraftTree) -> torch.Tensor:
        """Guided scores behind every node, [N, V]."""
        return self._steer(raw, self.passes.nodes(ids, tree.depths, tree.sees()))

    def _steer(self, raw: torch.Tensor, away: torch.Tensor) -> torch.Tensor:
        towards, away = torch.log_softmax(raw, -1), torch.log_softmax(away, -1)
        return self._scale * (towards - away) + away
