"""Record a decoding function that uses no processors of transformers, by the passes of the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from decodescope.core.generate_recording.call_recorder import ProcessedStep, SampleRecorder
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from collections.abc import Iterator

    from transformers.cache_utils import Cache

    from decodescope.core.generate_recording.call_recorder import CallInputs, NewRun
    from decodescope.core.models.loaded_model import LoadedModel

_KEPT_POSITIONS = 64
"""Last positions of a pass whose scores are kept: a pass that verifies a draft has one for each of its tokens."""
_RELATIVE, _ABSOLUTE = 1e-3, 1e-4
"""Differences of scores that two passes of the same tokens may have, in batches of different sizes."""
_MAX_BYTES = 2**29
"""Maximum size of the scores that are kept because no token could be assigned to them yet."""


@dataclass(frozen=True, slots=True)
class _Pass:
    """One pass of the model."""

    ids: list[list[int]]
    """What it read, [rows, n]."""
    end: int
    """Number of tokens up to its last one, earlier ones in the cache included."""
    scores: torch.Tensor
    """Its last scores, [rows, m, V]; m ≤ n."""

    def matches(self, length: int, row: list[int], own: int, only_best: bool) -> Iterator[torch.Tensor]:
        """Yield the scores [V] of each row that has read the first `length` tokens of the text `row`, as far as the
        pass shows them. `own`: the number of the row, which is enough if it has read them. `only_best`: whether a token
        that the pass has read already, a draft, must have the best score.
        """
        back, first = self.end - length, self.first
        if not 0 <= back < self.scores.shape[1] or length <= first:
            return
        read, column = row[first:length], self.scores.shape[1] - 1 - back
        found = [number for number, ids in enumerate(self.ids) if ids[: len(read)] == read]
        for number in [own] if own in found else found:
            is_draft = back > 0 and self.ids[number][len(read)] == row[length]
            if not (is_draft and only_best) or int(self.scores[number, column].argmax()) == row[length]:
                yield self.scores[number, column]

    @property
    def first(self) -> int:
        """Position of the first token that it read."""
        return self.end - len(self.ids[0])


class PassRecorder(SampleRecorder):
    """Records the tokens of such a function.

    While every pass continues the text by one token, tokens are written as they are chosen. Otherwise (a second pass
    with other rows, several candidates, drafts) they are known from the returned ids, and each gets the scores of the
    pass that has read exactly the tokens before it.
    """

    def __init__(self, model: LoadedModel, inputs: CallInputs, new_run: NewRun, start: torch.Tensor | None) -> None:
        """`start`: decoder ids [rows, T] before the first new token; None if only the first pass shows them."""
        super().__init__(model, inputs, new_run)
        self._start = start
        self._rows_so_far: list[list[int]] = start.tolist() if start is not None else []
        self._passes: list[_Pass] = []
        self._is_simple = True
        """Whether every pass continued the text by one token so far."""

    @property
    def has_passes(self) -> bool:
        """Whether the model was called."""
        return self.decoding_pass_count > 0

    def passed(self, ids: torch.Tensor, logits: torch.Tensor, cache: Cache | None) -> None:
        """Receive a pass: the ids that it read [rows, n] and their logits [rows, n or fewer, V]. Raises ValueError if
        too many are waiting.
        """
        if self._start is None:
            self._start, self._rows_so_far = ids, ids.tolist()
        self.forward(cache)
        kept = logits[:, -_KEPT_POSITIONS:].detach().to(torch.float32, copy=True)
        found = _Pass(ids.tolist(), self._end_of(ids, cache), kept)
        if self._is_simple:
            self._follow(found)
        self._passes.append(found)
        if sum(one.scores.nbytes for one in self._passes) > _MAX_BYTES:
            self._passes.clear()
            raise ValueError(tr("the passes of the decoding function do not show which tokens it chooses"))

    def _end_of(self, ids: torch.Tensor, cache: Any) -> int:
        """Return the number of tokens read so far."""
        try:
            length = int(cache.get_seq_length())
        except Exception:  # no cache, or one without positions
            length = 0
        if length >= ids.shape[1]:
            return length
        last = self._passes[-1].end if self._passes else 0
        return last + 1 if ids.shape[1] == 1 and last else ids.shape[1]

    def _follow(self, found: _Pass) -> None:
        """Write the token that this pass has read, if it continues the text and an earlier pass explains it."""
        length = len(self._rows_so_far[0])
        if found.end == length or (found.end < length and not self._passes):  # the prompt, perhaps in parts
            self._is_simple = len(found.ids) == len(self._rows_so_far) and not any(
                one.end == length for one in self._passes
            )
            return
        if found.end != length + 1 or len(found.ids) != len(self._rows_so_far):
            self._is_simple = found.end <= length and not self.runs
            return
        grown = [[*row, read[-1]] for row, read in zip(self._rows_so_far, found.ids, strict=True)]
        first = found.end - len(found.ids[0])
        is_same = all(row[first:] == read for row, read in zip(grown, found.ids, strict=True))
        if is_same and self._write_step(grown):
            self._passes.clear()
        else:
            self._is_simple = False

    def _write_step(self, rows: list[list[int]]) -> bool:
        """Write the next token of every row of the texts `rows`; return False if no pass explains it."""
        assert self._start is not None
        length = len(self._rows_so_far[0])
        scores = [self._scores_at(length, row, own) for own, row in enumerate(rows)]
        known = [one for one in scores if one is not None]
        if not known:
            return False
        filled = [known[0] if one is None else one for one in scores]
        if any(one is None and row[length] not in self.padding for one, row in zip(scores, rows, strict=True)):
            return False
        self.begin(self._start)
        self._pending = ProcessedStep(length, [torch.stack(filled)], ())
        ids = torch.tensor([row[: length + 1] for row in rows])
        self.write(ids[:, -1], [False] * len(ids), [], ids)
        self._rows_so_far = [row[: length + 1] for row in rows]
        return True

    def _scores_at(self, length: int, row: list[int], own: int) -> torch.Tensor | None:
        """Return the scores after the first tokens of a text; None if no pass has read them, or several with different
        results may have.
        """
        only_best = not self.inputs.config.do_sample
        whole = (found for one in self._passes if one.first == 0 for found in one.matches(length, row, own, only_best))
        if (first := next(whole, None)) is not None:
            return first
        found = [found for one in self._passes for found in one.matches(length, row, own, only_best)]
        is_clear = bool(found) and all(torch.allclose(found[0], other, _RELATIVE, _ABSOLUTE) for other in found[1:])
        return found[0] if is_clear else None

    def finish(self, result: torch.Tensor | None) -> None:
        """Assign scores to the returned tokens that are not written yet, and end the texts."""
        for rows in self._remaining(result):
            if not self._write_step(rows):
                break
        self._passes.clear()
        super().finish(None)

    def _remaining(self, result: torch.Tensor | None) -> Iterator[list[list[int]]]:
        """Yield the returned texts once for each token that is not written yet."""
        if result is None or self._start is None or result.dim() != 2 or len(result) != len(self._start):
            return
        start, rows = self._start.tolist(), result.tolist()
        if any(row[: len(before)] != before for row, before in zip(rows, start, strict=True)):
            rows = [[*before, *row] for row, before in zip(rows, start, strict=True)]
        written = len(self._rows_so_far[0])
        if all(row[:written] == before for row, before in zip(rows, self._rows_so_far, strict=True)):
            for _ in range(written, min(map(len, rows))):
                yield rows
