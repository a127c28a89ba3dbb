"""Record transformers' beam search: its candidates of each step, the beams that continue, and the finished ones."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from decodescope.core.decoding.beams.beam_group import DEAD, BeamGroup, BeamSettings
from decodescope.core.decoding.beams.beam_node import BeamNode, PathDecoder
from decodescope.core.decoding.beams.beam_search import beam_funnels, build_ranking, to_beam_candidate
from decodescope.core.decoding.beams.candidates import GroupScores, candidate_columns
from decodescope.core.decoding.sequences import stop_sequence
from decodescope.core.decoding.stopping import StopReason
from decodescope.core.events import BeamStep
from decodescope.core.generate_recording.call_recorder import CallRecorder

if TYPE_CHECKING:
    from decodescope.core.events import BeamFunnel
    from decodescope.core.generate_recording.call_recorder import CallInputs, FiredCriterion, NewRun, ProcessedStep
    from decodescope.core.generate_recording.run_writer import RunWriter
    from decodescope.core.models.loaded_model import LoadedModel


_NATURAL_ENDS = ("eos", "stop_string")


@dataclass(slots=True)
class _PromptBeams:
    """The search of one prompt."""

    run: RunWriter
    path_decoder: PathDecoder
    beams: list[BeamNode]
    """One node per row of the batch."""
    finished: list[BeamNode] = field(default_factory=list)
    """The finished hypotheses that transformers keeps."""
    candidates: list[BeamNode | None] = field(default_factory=list)
    """The candidates of the current step; None for those below any real score."""
    funnels: list[BeamFunnel] = field(default_factory=list)
    """What each stage left of the distributions of the current step."""
    node_count: int = 0
    is_done: bool = False


class BeamRecorder(CallRecorder):
    """Records beam search and beam sampling. The hooks of its helper methods call `chosen`, `continued`, `ended`,
    `note_improvement` and `step_done` in this order.
    """

    def __init__(self, model: LoadedModel, inputs: CallInputs, new_run: NewRun) -> None:
        super().__init__(model, inputs, new_run)
        config = inputs.config
        self._width = int(config.num_beams or 1)
        penalty = config.length_penalty
        self._length_penalty = float(penalty if penalty is not None else 1.0)
        self._early_stopping = config.early_stopping or False
        self._searches: list[_PromptBeams] = []
        self._step: ProcessedStep | None = None
        self._length = self._text_length = 0
        self._may_improve: list[bool] = []
        self._sent_finished: list[list[bool]] = []
        self._clock = time.perf_counter()

    def processed(self, ids: torch.Tensor, step: ProcessedStep) -> None:
        """Keep the log-probabilities of a step, before and after processing."""
        if not self._searches:
            self.begin(ids)
            self._searches = [self._new_search(run) for run in self.runs]
            self._clock = time.perf_counter()
        self._step = step
        self._length += 1

    def _new_search(self, run: RunWriter) -> _PromptBeams:
        start = run.sequences[0].stream.state
        decoder = PathDecoder(self.model.tokenizer, self.model.pieces, run.prompt.start, start)
        root = BeamNode(0, None, 0, 0, 0.0, decoder.start)
        return _PromptBeams(run, decoder, [root] * self._width)

    def chosen(self, scores: torch.Tensor, sequences: torch.Tensor, beam_indices: torch.Tensor, length: int) -> None:
        """Receive a step's candidates: total scores [B, n], their tokens [B, n, L], of which `length` precede the new
        one, and the rows that they continue [B, n, M].
        """
        step = self._step
        if step is None:
            return
        self._text_length = length
        tokens, rows = sequences[:, :, length], beam_indices[:, :, self._length - 1]
        for index, search in enumerate(self._searches):
            if not search.is_done:
                own = rows[index] - index * self._width
                search.candidates = self._build_nodes(search, index, scores[index], own, tokens[index])

    def _build_nodes(
        self, search: _PromptBeams, index: int, scores: torch.Tensor, rows: torch.Tensor, tokens: torch.Tensor
    ) -> list[BeamNode | None]:
        assert self._step is not None
        own = slice(index * self._width, (index + 1) * self._width)
        raw, final = self._step.scores[0][own], self._step.scores[-1][own]
        settings = BeamSettings(self._width, len(scores), self._early_stopping, self._length_penalty, 0, False)
        group = BeamGroup(0, settings, search.beams[0], None)
        view = GroupScores(group, final, raw, self._length, None, len(self._step.scores) > 1)
        flat = rows * final.shape[-1] + tokens
        nodes: list[BeamNode | None] = []
        columns = candidate_columns(view, settings, scores, flat)
        for (score, _, _, log_p, share, normalized, _, *own_raw), row, token in zip(
            columns, rows.tolist(), tokens.tolist(), strict=True
        ):
            if not score > DEAD:
                nodes.append(None)
                continue
            parent = search.beams[row]
            node = BeamNode(
                int(token), parent, row, self._length, score, parent.text_path, normalized=normalized,
                log_probability=log_p, probability=share, raw_log_probability=own_raw[0], raw_rank=int(own_raw[1]),
                entropy=own_raw[2],
            )  # fmt: skip
            node.text, node.text_path = search.path_decoder.push(parent.text_path, node.token)
            nodes.append(node)
        parents = {node.row: node.parent.number for node in nodes if node is not None and node.parent is not None}
        trace, top_n = [stage[own] for stage in self._step.scores], self.inputs.top_n
        search.funnels = beam_funnels(trace, self._step.headings, parents, top_n, self.model.pieces)
        return nodes

    def stopped(self, ids: torch.Tensor, done: list[bool], fired: list[FiredCriterion]) -> None:
        """Receive which candidates end a text; rows are those of all prompts, one after another."""
        count = len(done) // max(len(self._searches), 1)
        for index, search in enumerate(self._searches):
            for place, node in enumerate(() if search.is_done else search.candidates):
                row = index * count + place
                if node is not None and done[row]:
                    tail = ids[row, -32:].tolist()
                    node.stop = self.stop_reason(search.run, node.token, node.length, row, fired, tail)

    def continued(self, sequences: torch.Tensor, beam_indices: torch.Tensor) -> None:
        """Receive the beams that continue: ids [B, K, L] and rows [B, K, M]."""
        tokens, rows = sequences[:, :, self._text_length].tolist(), beam_indices[:, :, self._length - 1].tolist()
        for index, search in enumerate(self._searches):
            if search.is_done:
                continue
            found = {(node.row, node.token): node for node in search.candidates if node is not None}
            kept = [
                found.get((row - index * self._width, token))
                for row, token in zip(rows[index], tokens[index], strict=True)
            ]
            for node in kept:
                if node is not None and node.stop is None:
                    node.fate = "kept"
            stand_in = next((node for node in kept if node is not None), search.beams[0])
            search.beams = [node or stand_in for node in kept]

    def ended(self, sequences: torch.Tensor, is_sent_finished: torch.Tensor, prompt_length: int) -> None:
        """Receive the finished hypotheses: ids [B, K, L], and which of them are real [B, K]."""
        self._sent_finished = is_sent_finished.tolist()
        for index, search in enumerate(self._searches):
            if search.is_done:
                continue
            known = [*search.finished, *(node for node in search.candidates if node is not None and node.stop)]
            by_ids = {node.ids(): node for node in known}
            kept = []
            for place, is_real in enumerate(self._sent_finished[index]):
                if is_real:
                    ids = tuple(sequences[index, place, prompt_length:].tolist())
                    node = next((by_ids[ids[:n]] for n in range(min(len(ids), self._length), 0, -1)
                                 if ids[:n] in by_ids and by_ids[ids[:n]] not in kept), None)  # fmt: skip
                    if node is not None:
                        node.fate = "finished"
                        kept.append(node)
            search.finished = kept

    def note_improvement(self, may_improve: list[bool]) -> None:
        """Receive, for each prompt, whether a better hypothesis is possible."""
        self._may_improve = may_improve

    def step_done(self, goes_on: bool) -> None:
        """Emit the step of every prompt; `goes_on`: whether another step follows."""
        for index, search in enumerate(self._searches):
            if search.is_done:
                continue
            full = self._early_stopping is True and all(self._sent_finished[index])
            running = [node for node in search.candidates if node is not None and node.fate == "kept"]
            search.is_done = not goes_on or not self._may_improve[index] or full or not running
            if search.is_done:
                for node in running:
                    node.fate = "early_stopped"
            self._emit_step(search, [] if search.is_done else search.beams)
        for search in self._searches:
            search.run.measure_cache(self._length - 1, self.cache, len(self._searches))
        self._clock = time.perf_counter()

    def _emit_step(self, search: _PromptBeams, running: list[BeamNode]) -> None:
        nodes = sorted((node for node in search.candidates if node is not None), key=lambda node: -node.score)
        for rank, node in enumerate(nodes, 1):
            search.node_count += 1
            node.rank, node.number = rank, search.node_count
        leaders = [*sorted(search.finished, key=lambda node: -node.normalized)[:1], *running]
        leader = max(leaders, key=lambda node: node.normalized, default=None)
        for other in search.candidates[self._width :]:
            if other is not None and other.fate == "pruned" and other.stop and other.stop.reason not in _NATURAL_ENDS:
                other.stop = None  # a limit ends only the beams that would go on
        shown = nodes if self.inputs.top_n else [node for node in nodes if node.fate != "pruned"]
        search.run.lap()
        search.run.new_tokens = self._length
        search.run.emit(BeamStep(
            step=self._length - 1,
            candidates=tuple(to_beam_candidate(node, self.model.pieces, 0) for node in shown),
            best=leader.number if leader is not None else 0, seconds=time.perf_counter() - self._clock,
            length_penalty=self._length_penalty, funnels=tuple(search.funnels),
        ))  # fmt: skip

    def finish(self, result: torch.Tensor | None) -> None:
        """Emit the ranking and the returned texts of every prompt."""
        for search in self._searches:
            run, nodes = search.run, sorted(search.finished, key=lambda node: -node.normalized)
            texts = [node.decoded_text() + search.path_decoder.flush(node.text_path) for node in nodes]
            run.measure_cache(self._length, self.cache, len(self._searches), is_due=True)
            run.emit(build_ranking(nodes, texts, self._length_penalty, 0.0))
            for sequence, node, text in zip(run.sequences, nodes, texts, strict=False):
                sequence.ids[:], sequence.texts[:] = node.ids(), [text]
                sequence.stream.state = node.text_path
                tail = search.path_decoder.flush(node.text_path)
                sequence.texts[:] = [text.removesuffix(tail)] if tail else [text]
                run.emit(stop_sequence(sequence, node.stop or StopReason("stopped")))
            run.new_tokens = nodes[0].length if nodes else self._length
            del run.sequences[len(nodes) :]
            run.finish(scores=[node.normalized for node in nodes[: len(run.sequences)]])
