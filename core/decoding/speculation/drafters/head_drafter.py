"""Heads on the target's hidden states as a drafter: multi-token prediction (MTP) and EAGLE.

A head reads a token together with the hidden state of the previous token. A single head uses its own state as the
target's next one, so it can continue its own chains and trees; of several heads each reads the output of the one before
it and predicts one token further ahead.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
from transformers.cache_utils import DynamicCache

from decodescope.core.caches.tensors.layer_adapters import adapt_layer
from decodescope.core.decoding.speculation.drafters.base import DrafterKind
from decodescope.core.decoding.speculation.drafters.model_drafter import ModelDrafter
from decodescope.core.decoding.speculation.tree import NodePipeline
from decodescope.core.decoding.speculation.tree_passes import TargetHiddenStates
from decodescope.core.decoding.speculation.tree_support import causal_visibility
from decodescope.core.models.head_detection import head_folder
from decodescope.core.models.prediction_heads import PredictionHeads, load_eagle_head, load_mtp_heads
from decodescope.core.system.gpu import upload
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from decodescope.core.decoding.run import DecodingRun


class HeadReader:
    """Pass reader of `ModelDrafter`: row i of a head's cache combines the text's token i + 1 with the target's state of
    token i.
    """

    def __init__(
        self, heads: PredictionHeads, target_states: TargetHiddenStates, device: torch.device, dtype: torch.dtype
    ) -> None:
        self.heads, self.length, self.extra = heads, 0, 0
        self.target_states, self._device, self._dtype = target_states, device, dtype
        self._cache = DynamicCache()
        self._ids: list[int] = []
        self._states = [_HeadStates() for _ in range(heads.count)]
        self._draft_states: torch.Tensor | None = None
        """Hidden states of drafted rows [1, extra, D], where a single head continues from its own."""

    def read_text(self, ids: torch.Tensor) -> torch.Tensor:
        """Read text tokens [1, n] with the target's states of the tokens before them; return logits [1, V] after the
        last.
        """
        self._ids += ids[0].tolist()
        begin = max(self.length, 1)
        states = self.target_states.take(begin - 1, len(self._ids) - 1)
        self.length = len(self._ids)
        found = self._run_head(0, self._to_tensor(self._ids[begin:]), states, causal_visibility(self.length - begin))
        self._states[0].add(found)
        return self.heads.scores(found[:, -1:])

    def read_nodes(self, ids: torch.Tensor, depths: Sequence[int], visibility: npt.NDArray[np.bool_]) -> torch.Tensor:
        """Read drafted tokens [1, n] like `TreePasses.read_nodes`; return logits [n, V]. With several heads, apply the
        chain's next head.
        """
        if self.heads.count > 1:
            return self._next_head(ids, depths[0] + 1)
        last = self._states[0].last
        known = last if self._draft_states is None else torch.cat([last, self._draft_states], 1)
        found = self._run_head(0, ids, known[:, _parent_rows(visibility)], visibility, depths)
        self._draft_states = found if self._draft_states is None else torch.cat([self._draft_states, found], 1)
        self.extra += ids.shape[1]
        return self.heads.scores(found)

    def commit(self, rows: Sequence[int]) -> None:
        """Drop guessed rows: the target's own states of the accepted tokens follow with the text."""
        if self.heads.count == 1:
            self._truncate(0, self.length - 1)
        self._draft_states, self.extra = None, 0

    def crop(self, length: int) -> None:
        """Reset the cache, because no other run can use it."""
        self._cache, self._draft_states, self.extra = DynamicCache(), None, 0

    def _next_head(self, ids: torch.Tensor, head: int) -> torch.Tensor:
        """Apply a further head: row i of head h combines token i + 1 + h with the state of head h − 1 in row i, so its
        last h rows contain guesses.
        """
        before, own = self._states[head - 1], self._states[head]
        self._truncate(head, own.count)
        rows = self.length - 1 - own.count
        known = [*self._ids, *self._draft_chain(ids, head)]
        tokens = self._to_tensor(known[own.count + 1 + head : self.length + head])
        found = self._run_head(head, tokens, before.from_row(own.count), causal_visibility(rows))
        own.replace(found, rows, max(rows - head, 0))
        return self.heads.scores(found[:, -1:])

    def _draft_chain(self, ids: torch.Tensor, head: int) -> list[int]:
        """Return the chain so far: earlier guesses and the current token."""
        if head == 1:
            self._drafted: list[int] = []
        self._drafted.append(int(ids[0, 0]))
        return self._drafted

    def _run_head(
        self, head: int, ids: torch.Tensor, states: torch.Tensor, visibility: npt.NDArray[np.bool_],
        depths: Sequence[int] | None = None,
    ) -> torch.Tensor:  # fmt: skip
        """Return states of new rows. `visibility`: visibility of the rows after the text [n, rows]; `depths`: positions
        of guesses.
        """
        held = self._cached_rows(head)
        settled = held + ids.shape[1] - visibility.shape[1]
        places = np.arange(held, held + ids.shape[1]) if depths is None else self.length - 1 + np.asarray(depths)
        positions = torch.from_numpy(places + 1 + head).to(self._device)[None]
        mask = self._mask(settled, places, visibility, self.heads.windows[head])
        return self.heads.read(head, ids, states.to(self._device), positions, mask, self._cache)

    def _mask(
        self, settled_rows: int, places: npt.NDArray[np.int_], visibility: npt.NDArray[np.bool_], window: int | None
    ) -> torch.Tensor:
        """Return the additive mask [1, 1, n, settled + rows]: all settled rows are visible, others by `visibility`."""
        blocked = np.zeros((len(places), settled_rows + visibility.shape[1]), dtype=np.bool_)
        np.logical_not(visibility, out=blocked[:, settled_rows:])
        if window is not None:  # guesses are less than a window after the text
            blocked[:, :settled_rows] |= np.arange(settled_rows)[None] <= places[:, None] - window
            blocked[:, settled_rows:] |= (np.cumsum(visibility[:, ::-1], 1)[:, ::-1] > window) & visibility
        mask = torch.zeros(blocked.shape, dtype=self._dtype)
        mask[torch.from_numpy(blocked)] = torch.finfo(self._dtype).min
        return mask[None, None].to(self._device)

    def _cached_rows(self, head: int) -> int:
        return int(self._cache.get_seq_length(head)) if head < len(self._cache.layers) else 0

    def _truncate(self, head: int, length: int) -> None:
        if self._cached_rows(head) > length:
            adapt_layer(self._cache.layers[head]).truncate(length, self._cached_rows(head))

    def _to_tensor(self, ids: Sequence[int]) -> torch.Tensor:
        return upload([list(ids)], self._device)


class _HeadStates:
    """Hidden states of a head by row: settled rows, whose tokens are part of the text, and later ones."""

    def __init__(self) -> None:
        self.count = 0
        """Number of settled rows."""
        self._offset = 0
        self._tensor: torch.Tensor | None = None

    def add(self, states: torch.Tensor) -> None:
        """Append settled rows [1, n, D]."""
        self._tensor = states if self._tensor is None else torch.cat([self._tensor, states], 1)
        self.count += states.shape[1]

    def replace(self, states: torch.Tensor, rows: int, settled_rows: int) -> None:
        """Replace the rows after the settled ones by [1, rows, D]; the first `settled_rows` of them are settled now."""
        if self._tensor is not None:
            self._tensor = self._tensor[:, : self.count - self._offset]
        self._tensor = states if self._tensor is None else torch.cat([self._tensor, states], 1)
        self.count += settled_rows

    def from_row(self, row: int) -> torch.Tensor:
        """Return the states from `row` on; drop the earlier ones."""
        assert self._tensor is not None
        self._tensor, self._offset = self._tensor[:, row - self._offset :], row
        return self._tensor

    @property
    def last(self) -> torch.Tensor:
        """The latest row's state [1, 1, D]; earlier ones are dropped."""
        assert self._tensor is not None
        self._tensor, self._offset = self._tensor[:, -1:], self.count - 1
        return self._tensor


def _parent_rows(visibility: npt.NDArray[np.bool_]) -> list[int]:
    """Return each new row's parent among the guessed rows, from 1; 0 is the text's last row.

    The parent is the latest other row that it sees, because rows follow their parents.
    """
    before = visibility.shape[1] - visibility.shape[0]
    return [int(max(np.flatnonzero(row[: before + place]), default=-1)) + 1 for place, row in enumerate(visibility)]


class HeadDrafter(ModelDrafter):
    """Drafts like a model; with several heads at most one token per head."""

    reader: HeadReader

    def max_length(self, length: int) -> int:
        """Return the maximum draft length; a single head has no limit of its own."""
        count = self.reader.heads.count
        return super().max_length(length) if count == 1 else min(super().max_length(length), count)


def build_head_drafter(run: DecodingRun, number: int) -> HeadDrafter:
    """Build a drafter from the heads in the folder `draft_head`, else from those in the target's own checkpoint."""
    folder, model = run.settings.get("draft_head"), run.model
    heads: PredictionHeads = load_eagle_head(model, head_folder(folder)) if folder else load_mtp_heads(model)
    name = Path(folder).name if folder else tr("{model}, its own heads").format(model=model.name)
    stages = [stage for stage in run.pipeline.stages if stage.processor.drafts]
    reader = HeadReader(heads, TargetHiddenStates(), model.device, model.dtype)
    return HeadDrafter(
        name, reader, NodePipeline(stages), run.generator, number, run.is_cancelled, model.vocabulary, None,
        heads.weight_count, model.readable_ids, heads.readable_ids,
    )  # fmt: skip


DRAFTER = DrafterKind("prediction_heads", build_head_drafter, order=50)
