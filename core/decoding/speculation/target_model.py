"""The target model during speculation: scores all nodes of a round in one pass."""

from __future__ import annotations

import numpy as np
import torch

from decodescope.core.caches.tensors import cache_operations
from decodescope.core.caches.tensors.continuation_probe import draft_cache
from decodescope.core.decoding.forward.forward_pass import Forward, ForwardOutput
from decodescope.core.decoding.run import DecodingRun
from decodescope.core.decoding.speculation.drafters.base import SpeculationText
from decodescope.core.decoding.speculation.drafters.lookahead_drafter import ExtraRowsDrafter
from decodescope.core.decoding.speculation.tree import DraftTree, NodePipeline
from decodescope.core.decoding.speculation.tree_passes import TreePasses, last_hidden_states
from decodescope.core.errors import ParameterError
from decodescope.core.system.gpu import upload
from decodescope.resources.language import tr


def _check_parallel_stages(run: DecodingRun) -> None:
    """Raise ParameterError for a stage that must see each drawn token before processing the next."""
    for stage in run.pipeline.stages:
        if stage.processor.needs_every_token:
            title = tr(stage.processor.parameter.title) if stage.processor.parameter else stage.name
            cause = tr("{setting} needs tokens one by one, but drafted tokens are verified several at once.")
            remedy = tr("Turn {setting} off, or choose a strategy without drafts.")
            raise ParameterError(cause.format(setting=title), remedy.format(setting=title), stage.name)


class TargetModel:
    """The run's model with its cache, which is rolled back after every round, and its processor pipeline.

    Guidance (CFG) needs a second pass over every node without the prompt; it has its own cache.
    """

    def __init__(self, run: DecodingRun) -> None:
        _check_parallel_stages(run)
        self._run = run
        self.passes = TreePasses(run.forward)
        guides = [stage for stage in run.pipeline.stages if stage.processor.reads]
        self.pipeline = NodePipeline(stage for stage in run.pipeline.stages if not stage.processor.reads)
        self.headings = [stage.heading for stage in (*guides, *self.pipeline.stages)]
        self._guidance = _GuidancePass(run) if guides else None

    def score_prompt(self, output: ForwardOutput, text: SpeculationText) -> list[torch.Tensor]:
        """Return the scores after the prompt: raw and after every stage, each [1, V]."""
        cache_operations.show_text_only(self._run.forward.cache, True)
        self.passes.length = len(text)
        if self.passes.hidden_states is not None:
            self.passes.hidden_states.add_text(
                last_hidden_states(output)[:, -len(text) :]
            )  # without the positions of images
        raw = self._run.replace_invalid(output.last)
        scores = [raw] if self._guidance is None else [raw, self._guidance.first(raw, text)]
        return [*scores, *self.pipeline.trace([text.tensor], scores[-1])[1:]]

    def score_step(self, text: SpeculationText) -> list[torch.Tensor]:
        """Read the text's last token permanently; return the scores after it, each [1, V]."""
        ids = text.last
        raw = self._run.replace_invalid(self.passes.read_text(ids))
        scores = [raw] if self._guidance is None else [raw, self._guidance.step(raw, ids)]
        if not self.pipeline.stages:
            return scores
        return [*scores, *self.pipeline.trace([text.tensor], scores[-1])[1:]]

    def score_tree(
        self, text: SpeculationText, tree: DraftTree, extra_rows_drafter: ExtraRowsDrafter | None = None
    ) -> list[torch.Tensor]:
        """Return the scores after every node, each [N, V]; the rows of a lookahead branch share the pass."""
        ids = upload([tree.ids], self._run.device)
        raw = (
            self.passes.read_nodes(ids, tree.depths, tree.ancestor_mask())
            if extra_rows_drafter is None
            else self._score_with_rows(extra_rows_drafter, text, tree)
        )
        raw = self._run.replace_invalid(raw)
        scores = [raw] if self._guidance is None else [raw, self._guidance.nodes(raw, ids, tree)]
        return [*scores, *self.pipeline.trace_tree(text.tensor, tree, scores[-1])[1:]]

    def _score_with_rows(
        self, extra_rows_drafter: ExtraRowsDrafter, text: SpeculationText, tree: DraftTree
    ) -> torch.Tensor:
        """Run one pass over tree and lookahead rows; return the tree's logits [N, V]."""
        riders, nodes = extra_rows_drafter.extra_rows(text), len(tree)
        ids = upload([[*tree.ids, *riders.ids]], self._run.device)
        sees = np.zeros((ids.shape[1], ids.shape[1]), dtype=np.bool_)
        sees[:nodes, :nodes], sees[nodes:, nodes:] = tree.ancestor_mask(), riders.sees
        sees[nodes:, 0] = True
        logits = self.passes.read_nodes(ids, [*tree.depths, *riders.depths], sees)
        extra_rows_drafter.update_rows(logits[nodes:].argmax(-1).tolist())
        return logits[:nodes]

    def commit(self, path: list[int]) -> None:
        """Keep the root and the accepted path."""
        self.passes.commit([0, *path])
        if self._guidance:
            self._guidance.passes.commit([0, *path])

    def crop(self, length: int) -> None:
        """Cut the cache to the first `length` tokens of the text and restore its normal state."""
        surplus = self.passes.length - length
        self.passes.crop(length)
        cache_operations.show_text_only(self._run.forward.cache, False)
        if self._guidance:
            self._guidance.passes.crop(self._guidance.passes.length - max(surplus, 0))


class _GuidancePass:
    """The guidance pass without the prompt (or with a negative one)."""

    def __init__(self, run: DecodingRun) -> None:
        self._negative = run.context.negative_ids
        self._scale = float(run.settings["guidance_scale"])
        self.passes = TreePasses(Forward(run.model, draft_cache(run.model)))

    def first(self, raw: torch.Tensor, text: SpeculationText) -> torch.Tensor:
        """Return guided scores after the prompt, [1, V]."""
        return self.step(raw, text.tensor[:, -1:] if self._negative is None else self._negative[:1])

    def step(self, raw: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        """Return guided scores after text tokens [1, n], [1, V]."""
        return self._steer(raw, self.passes.read_text(ids))

    def nodes(self, raw: torch.Tensor, ids: torch.Tensor, tree: DraftTree) -> torch.Tensor:
        """Return guided scores after every node, [N, V]."""
        return self._steer(raw, self.passes.read_nodes(ids, tree.depths, tree.ancestor_mask()))

    def _steer(self, raw: torch.Tensor, negative_logits: torch.Tensor) -> torch.Tensor:
        towards, negative_logits = torch.log_softmax(raw, -1), torch.log_softmax(negative_logits, -1)
        return self._scale * (towards - negative_logits) + negative_logits
