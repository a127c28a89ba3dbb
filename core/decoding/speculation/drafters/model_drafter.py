"""A model as drafter: chains, with optional leaves, and trees of given widths."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch

from decodescope.core.caches.tensors.continuation_probe import draft_cache, probe_text
from decodescope.core.decoding.forward.forward_pass import Forward
from decodescope.core.decoding.speculation.drafters.base import SpeculationText
from decodescope.core.decoding.speculation.drafters.tree_drafter import TreeDrafter
from decodescope.core.decoding.speculation.round_plan import RoundPlan
from decodescope.core.decoding.speculation.tree import Branch, NodePipeline
from decodescope.core.decoding.tensor_utils import draw_samples
from decodescope.core.models.decoder_layers import get_layers, layer_path, replace_layers
from decodescope.core.models.loaded_model import LoadedModel
from decodescope.core.system.device_memory import is_out_of_memory
from decodescope.core.system.gpu import DeviceTimer, synchronize, upload
from decodescope.resources.language import tr, trn

Leaf = tuple[int, int, float]
"""Parent, token, probability."""
FIRST_CHUNK = 256
"""Minimum number of tokens that a draft model reads at once."""
CHUNK_SECONDS = 0.18
"""Target duration of one chunk, after which cancellation is checked."""
_MIN_REMAINDER = 0.1
"""Minimum probability left to other tokens for considering them."""
_MAX_CHILDREN = 3
"""Maximum number of children of a node where the gate decides."""


class PassReader(Protocol):
    """The part of `TreePasses` that drafting uses."""

    length: int
    extra: int

    def read_text(self, ids: torch.Tensor) -> torch.Tensor: ...
    def read_nodes(
        self, ids: torch.Tensor, depths: Sequence[int], visibility: npt.NDArray[np.bool_]
    ) -> torch.Tensor: ...
    def commit(self, rows: Sequence[int]) -> None: ...
    def crop(self, length: int) -> None: ...


@runtime_checkable
class ArgmaxReader(Protocol):
    """A reader that finds its most likely token on the CPU and continues after it without masks and positions."""

    @property
    def reads_argmax(self) -> bool: ...
    def read_next(self, token: int) -> torch.Tensor: ...
    def argmax(self, logits: torch.Tensor) -> tuple[int, float]: ...


def read_text_in_chunks(reader: PassReader, ids: torch.Tensor, is_cancelled: Callable[[], bool]) -> torch.Tensor | None:
    """Read text ids [1, n] in chunks; return logits [1, V] after the last, None if the run was cancelled."""
    size = FIRST_CHUNK
    while ids.shape[1] > size + size // 2:
        begun = time.perf_counter()
        reader.read_text(ids[:, :size])
        synchronize(ids.device)
        if is_cancelled():
            return None
        ids = ids[:, size:]
        seconds = max(time.perf_counter() - begun, 1e-6)
        size = max(FIRST_CHUNK, min(int(size * CHUNK_SECONDS / seconds), 4 * size))
    return reader.read_text(ids)


class ModelDrafter:
    """Drafts with a model that shares the target's tokens.

    `reader` holds its cache; `pipeline` processes its scores like the target's. `vocabulary` is the size of the
    target's logits, `target_ids` the number of ids the target reads and `draft_ids` the number the draft model reads:
    models with the same tokenizer may differ in padding rows. The draft model reads its last id instead of one without
    a row; the target verifies such drafts like any other.
    """

    def __init__(
        self, name: str, reader: PassReader, funnel: NodePipeline, generator: torch.Generator, number: int,
        is_cancelled: Callable[[], bool], vocabulary: int, context: int | None, weights: int = 0,
        target_ids: int | None = None, draft_ids: int | None = None,
    ) -> None:  # fmt: skip
        self.name, self.reader, self.pipeline, self.parameter_count = name, reader, funnel, weights
        self._target_ids = vocabulary if target_ids is None else min(target_ids, vocabulary)
        self._draft_ids = draft_ids if draft_ids is not None and draft_ids < vocabulary else None
        self._generator, self._index, self._is_cancelled, self._vocabulary = (
            generator, number, is_cancelled, vocabulary,
        )  # fmt: skip
        self._context = context
        self._lacks_ids = False
        """Whether its logits have fewer columns than the target's."""
        self._first_token: DeviceTimer | None = None
        self._cached_nodes: list[tuple[int, int]] = []
        """(parent's row or -1, token) of the cached node rows."""

    @property
    def first_token_seconds(self) -> float:
        """Seconds of the latest proposal up to its first token; on a GPU, of its work and not of its launches."""
        return self._first_token.seconds if self._first_token is not None else 0.0

    def max_length(self, length: int) -> int:
        """Return the remaining context length."""
        return 1_000_000 if self._context is None else self._context - length + 1

    def propose(self, text: SpeculationText, plan: RoundPlan) -> Branch | None:
        """Read new text, then draft."""
        self._cached_nodes = []
        timer = DeviceTimer(self._generator.device)
        raw = read_text_in_chunks(self.reader, self._clamp_ids(text.ids_from(self.reader.length)), self._is_cancelled)
        if raw is None:
            return None
        logits = self._fit_vocabulary(raw)
        timer.stop()
        self._first_token = timer
        if not plan.is_chain or (plan.allows_leaves and plan.gate is not None and plan.gate.should_branch()):
            return TreeDrafter(self, text, plan).draft(logits)
        reader = self.reader
        is_plain = logits is raw and not (plan.is_sampled or plan.keeps_q or self.pipeline.stages)
        if (
            is_plain
            and self._generator.device.type == "cpu"
            and isinstance(reader, ArgmaxReader)
            and reader.reads_argmax
        ):
            return self._draft_argmax_chain(reader, plan, logits)
        return self._draft_chain(text, plan, logits)

    def commit(self, accepted: Sequence[int]) -> None:
        """Keep the cached rows of the accepted path."""
        rows: list[int] = []
        place = {fed: row for row, fed in enumerate(self._cached_nodes)}
        row = -1
        for token in accepted:
            found = place.get((row, token))
            if found is None:
                break
            rows.append(found)
            row = found
        self.reader.commit(rows)
        self._cached_nodes = []

    def finish(self, length: int) -> None:
        """Cut the cache to the text."""
        self.reader.crop(length)

    def _fit_vocabulary(self, logits: torch.Tensor) -> torch.Tensor:
        """Return logits [n, V] over the target's vocabulary: cut surplus ids, and set missing ones to -inf."""
        known = min(logits.shape[-1], self._target_ids)
        if known == logits.shape[-1] == self._vocabulary:
            return logits
        self._lacks_ids = known < self._vocabulary
        return torch.nn.functional.pad(logits[:, :known], (0, self._vocabulary - known), value=-torch.inf)

    def _clamp_ids(self, ids: torch.Tensor) -> torch.Tensor:
        """Clamp ids to those the draft model can read."""
        return ids if self._draft_ids is None else ids.clamp(max=self._draft_ids - 1)

    def _draft_chain(self, text: SpeculationText, plan: RoundPlan, logits: torch.Tensor) -> Branch | None:
        """Draft a chain; tensors stay on the device unless a rule needs a probability."""
        tokens: list[torch.Tensor] = []
        rows: list[torch.Tensor] = []
        known: list[tuple[int, float]] = []
        """Tokens and their probabilities on the host, where a rule needs them."""
        leaves: list[Leaf] = []
        looks, chance, prefix = plan.threshold > 0 or plan.gate is not None, 1.0, text.tensor
        for depth in range(plan.depth):
            scores = self.pipeline.process_rows([prefix], logits) if self.pipeline.stages else logits
            if self._lacks_ids and not bool(scores.isfinite().any()):
                break  # the settings leave only ids that the draft model does not score
            if plan.is_sampled or looks:
                scores = torch.softmax(scores, -1)
            token = draw_samples(scores, 1, self._generator)[0] if plan.is_sampled else scores.argmax(-1)
            tokens.append(token)
            rows.append(scores)
            if looks:
                number, share = torch.cat([token.to(scores.dtype), scores[0].index_select(0, token)]).tolist()
                known.append((int(number), share))
                leaves += self._leaves(depth, scores, share, chance, plan, len(leaves))
                chance *= plan.gate.acceptance(self._index, share) if plan.gate else 1.0
                nodes = depth + 1 + len(leaves)
                if share < plan.threshold or (plan.gate and not plan.gate.should_extend((chance,), nodes)):
                    break
            if depth + 1 == plan.depth:
                break
            if self._is_cancelled():
                return None
            if self.pipeline.needs_prefix:
                prefix = torch.cat([prefix, token[None]], dim=1)
            ids = self._clamp_ids(token[None])
            logits = self._fit_vocabulary(
                self.reader.read_nodes(ids, (depth,), np.ones((1, depth + 1), dtype=np.bool_))
            )
        if not tokens:
            return Branch()
        q = torch.cat(rows) if plan.is_sampled or looks else torch.softmax(torch.cat(rows), -1)
        if not known:
            drawn = torch.cat(tokens)
            numbers, shares = torch.stack([drawn.to(q.dtype), q.gather(1, drawn[:, None])[:, 0]]).tolist()
            known = [(int(number), share) for number, share in zip(numbers, shares, strict=True)]
        chain, probabilities = [number for number, _ in known], [share for _, share in known]
        return self._branch(chain, probabilities, leaves, list(q) if plan.keeps_q else ())

    def _draft_argmax_chain(self, reader: ArgmaxReader, plan: RoundPlan, logits: torch.Tensor) -> Branch | None:
        """Draft the same chain token by token, with the scores as the only tensors."""
        ids: list[int] = []
        shares: list[float] = []
        leaves: list[Leaf] = []
        gate, chance = plan.gate, 1.0
        while True:
            token, share = reader.argmax(logits)
            if plan.allows_leaves and 1 - share >= _MIN_REMAINDER:
                q = torch.softmax(logits, -1)
                leaves += self._leaves(len(ids), q, share, chance, plan, len(leaves))
            ids.append(token)
            shares.append(share)
            chance *= gate.acceptance(self._index, share) if gate else 1.0
            ends = share < plan.threshold or len(ids) == plan.depth
            if ends or (gate and not gate.should_extend((chance,), len(ids) + len(leaves))):
                break
            if self._is_cancelled():
                return None
            logits = reader.read_next(token if self._draft_ids is None else min(token, self._draft_ids - 1))
        return self._branch(ids, shares, leaves)

    def _leaves(
        self, depth: int, q: torch.Tensor, share: float, chance: float, plan: RoundPlan, others: int
    ) -> list[Leaf]:  # fmt: skip
        """Return alternatives to a chain's next token, if they are worth their price.

        Such leaves need no draft pass of their own and help where the drafter is uncertain.
        """
        if not plan.allows_leaves or plan.gate is None or 1 - share < _MIN_REMAINDER:
            return []
        nodes = depth + others
        # The rest of the probability bounds the second token's, so that a search is rarely needed.
        if plan.gate.child_count(chance, (share, 1 - share), self._index, nodes, plan.is_sampled) == 1:
            return []
        top = q.topk(min(_MAX_CHILDREN, q.shape[-1]))
        shares: list[float] = top.values[0].tolist()
        width = plan.gate.child_count(chance, shares, self._index, nodes, plan.is_sampled)
        return [
            (depth, token, share)
            for token, share in zip(top.indices[0, 1:width].tolist(), shares[1:], strict=False)
            if share > 0
        ]

    def _branch(
        self, ids: list[int], probabilities: list[float], leaves: list[Leaf], q: Sequence[torch.Tensor] = ()
    ) -> Branch:
        """Build a branch from a chain, whose last token was not read, and its leaves."""
        self._cached_nodes = list(zip(range(-1, len(ids) - 2), ids[:-1], strict=True))
        branch = Branch.chain(ids, probabilities, q)
        for leaf in leaves:
            branch.add(*leaf)
        return branch

    def read_level(
        self, tokens: Sequence[int], parents: Sequence[int], depth: int, visibility: npt.NDArray[np.bool_]
    ) -> torch.Tensor:
        """Read one level of a tree; return logits [n, V]. `parents`: rows of the nodes' parents, -1 for the root."""
        self._cached_nodes += zip(parents, tokens, strict=True)
        ids = self._clamp_ids(upload([list(tokens)], self._generator.device))
        return self._fit_vocabulary(self.reader.read_nodes(ids, [depth] * len(tokens), visibility))

    @property
    def index(self) -> int:
        """Index among the run's drafters."""
        return self._index

    @property
    def generator(self) -> torch.Generator:
        """The run's random generator."""
        return self._generator

    @property
    def is_cancelled(self) -> Callable[[], bool]:
        """Returns whether the user requested a stop."""
        return self._is_cancelled


_EARLY_EXIT_KEY = "reads_half_way"


def supports_early_exit(model: LoadedModel) -> bool:
    """Return whether the lowest layer alone, with norm and head, can score a text; tested once and cached."""
    if model.is_encoder_decoder or layer_path(model) is None:
        return False
    if next(model.model.parameters()).is_meta:
        return True
    if _EARLY_EXIT_KEY not in model.strategy_data:
        model.strategy_data[_EARLY_EXIT_KEY] = _test_early_exit(model)
    return bool(model.strategy_data[_EARLY_EXIT_KEY])


def build_early_exit_model(model: LoadedModel, count: int) -> LoadedModel:
    """Return the target with only its first `count` layers, sharing modules and weights.

    Raises ValueError if it has no list of layers.
    """
    path = layer_path(model)
    if path is None:
        raise ValueError(tr("{model} has no list of layers").format(model=model.name))
    name = trn("{model}, {count} layer", "{model}, {count} layers", count).format(model=model.name, count=count)
    return replace_layers(model, path, get_layers(model, path)[:count], name)


@torch.inference_mode()
def _test_early_exit(model: LoadedModel) -> bool:
    try:
        lower = build_early_exit_model(model, 1)
        forward = Forward(lower, draft_cache(lower))
        for token in probe_text(model)[:3]:
            scores = forward(torch.tensor([[token]], device=model.device)).last
        return scores.shape[-1] == model.vocabulary
    except Exception as error:
        if is_out_of_memory(error):
            raise
        return False
