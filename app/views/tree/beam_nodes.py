"""Build the nodes of a beam search's tree: the candidates of each step, with the prompt's end as the root."""

from __future__ import annotations

from collections.abc import Iterator

from decodescope.app.state.beam_tree import BeamTree
from decodescope.app.state.run import Run
from decodescope.app.state.sequences import LIMITS
from decodescope.app.views.node_reports import NodeReport, ReportRow
from decodescope.app.views.text.token_wording import token_text
from decodescope.app.widgets.tree_canvas.canvas_state import CanvasState
from decodescope.app.widgets.tree_canvas.tree_model import NodeState, TreeNode
from decodescope.core import explain_candidate, share, words
from decodescope.core.events import BeamCandidate, BeamFate, BeamStep
from decodescope.resources import depth
from decodescope.resources.language import mark, tr, trn

ROOT = 0
_STATES: dict[BeamFate, NodeState] = {
    "kept": "kept",
    "pruned": "pruned",
    "finished": "finished",
    "early_stopped": "stopped",
}


class BeamTreeBuilder:
    """Add the new nodes of a run's beam tree to the canvas."""

    def __init__(self, stage: CanvasState) -> None:
        self._stage = stage
        self.steps = self._constraint_length = 0

    def restart(self) -> None:
        """Clear the canvas for another run."""
        self.steps = self._constraint_length = 0
        self._stage.clear()

    def update(self, run: Run, tree: BeamTree) -> None:
        """Add new steps, and show the tree at the run's cursor."""
        if self.steps < len(tree.steps):
            self._stage.add_nodes(self._new_nodes(run, tree))
        self._stage.set_max_depth(None if run.cursor >= len(tree.steps) else run.cursor)
        self._stage.set_best_path([ROOT, *(candidate.node for candidate in tree.leading_path(run.cursor))])

    def _new_nodes(self, run: Run, tree: BeamTree) -> Iterator[TreeNode]:
        if self.steps == 0:
            self._stage.set_lane_titles({n: tr("Group {number}").format(number=n + 1) for n in range(tree.groups)})
            yield TreeNode(ROOT, None, root_label(run), state="root", lane=None if tree.groups > 1 else 0)
        total = tree.progress  # every result satisfies all constraints, so some node reaches their full length
        if total != self._constraint_length:
            self._constraint_length = total
            self._stage.set_progress({c.node: (c.progress, total) for s in tree.steps for c in s.candidates})
        for step in tree.steps[self.steps :]:
            for candidate in step.candidates:
                yield _node(candidate, total)
        self.steps = len(tree.steps)


def root_label(run: Run) -> str:
    """Return the prompt's last word, or `start` if there is none."""
    words = [token_text(token.text, token.special).strip("␣") for token in run.before[-1:]]
    return f"…{words[0]}" if words and words[0] and not words[0].startswith("⟨") else tr("start")


def displayed_path(run: Run) -> list[BeamCandidate]:
    """Return the nodes of the shown text; empty if it is not from a beam search."""
    if run.beams is None or not run.tokens:
        return []
    return run.beams.path(run.beams.node_of(run.tokens[-1]))


def candidate_label(candidate: BeamCandidate) -> str:
    """Return the node's label: its token, or `end` for an end-of-sequence token."""
    return tr("end") if candidate.ended == "eos" else token_text(candidate.piece, candidate.special)


def _node(candidate: BeamCandidate, total: int) -> TreeNode:
    is_cut = candidate.fate == "finished" and candidate.ended in LIMITS
    return TreeNode(
        candidate.node, candidate.parent, candidate_label(candidate), probability_text(candidate.probability),
        note=words.decimal(candidate.score), weight=candidate.probability,
        state="cut" if is_cut else _STATES[candidate.fate], lane=candidate.group,
        progress=(candidate.progress, total) if total else None,
    )  # fmt: skip


def probability_text(probability: float) -> str:
    """Format a probability: `.46`; `1`, `>.99` and `<.01` at the limits."""
    return words.compact_share(probability)


MAX_ROWS = 12
_VERDICTS: dict[BeamFate, str] = {
    "kept": mark("Kept at step {step}."),
    "pruned": mark("Pruned at step {step}."),
    "finished": mark("Finished at step {step}."),
    "early_stopped": mark("Stopped early at step {step}."),
}
_FATE_WORDS: dict[BeamFate, str] = {
    "kept": mark("kept"), "pruned": mark("pruned"), "finished": mark("finished"), "early_stopped": mark("stopped"),
}  # fmt: skip


def beam_node_report(tree: BeamTree, node: int) -> NodeReport:
    """Return the report on a node. Raises KeyError for the root and for unknown nodes."""
    candidate, step = tree.candidate(node), tree.step_of(node)
    return NodeReport(
        heading=tr("Beam node"),
        term="beam",
        token=token_text(candidate.piece, candidate.special),
        facts=_facts(candidate, step),
        sentence=explain_candidate(candidate, step, tree.width),
        verdict=tr(_VERDICTS[candidate.fate]).format(step=step.step + 1),
        so_far=tree.text(node),
        table_title=_step_title(candidate, step),
        columns=_columns(),
        rows=_competitor_rows(candidate, step),
        formula=score_formula(tree, candidate, step),
    )


def beam_root_report(tree: BeamTree, last_word: str, prompt_tokens: int) -> NodeReport:
    """Return the report on the root: the prompt's end, and the first candidates."""
    first = tree.steps[0].candidates if tree.steps else ()
    kept_count = sum(candidate.fate != "pruned" for candidate in first)
    considered = trn(
        "The first step considered {count:,} continuation and kept {kept:,}.",
        "The first step considered {count:,} continuations and kept {kept:,}.",
        len(first),
    )
    rows = tuple(_row(candidate, False) for candidate in sorted(first, key=lambda c: (c.group, c.rank))[:MAX_ROWS])
    return NodeReport(
        heading=tr("Start of the tree"),
        term="beam_search",
        token=last_word,
        facts=_prompt_length_text(prompt_tokens),
        sentence=considered.format(count=len(first), kept=kept_count) if first else "",
        verdict=tr("The prompt ends here; all hypotheses start here."),
        table_title=tr("Step {step}").format(step=1),
        columns=_columns(),
        rows=rows,
    )


def _columns() -> tuple[str, ...]:
    return tr("continuation"), tr("log p"), tr("score"), ""


def _step_title(candidate: BeamCandidate, step: BeamStep) -> str:
    template = tr("Step {step}, group {group}") if _groups(step) > 1 else tr("Step {step}")
    return template.format(step=step.step + 1, group=candidate.group + 1)


def _prompt_length_text(tokens: int) -> str:
    """Return `prompt of 12 tokens`, or an empty string without a prompt."""
    template = trn("prompt of {count:,} token", "prompt of {count:,} tokens", tokens)
    return template.format(count=tokens) if tokens else ""


def beam_node_tooltip(tree: BeamTree | None, node: int) -> str:
    """Return the tooltip of a node; empty for the root."""
    if tree is None or node not in tree:
        return ""
    candidate = tree.candidate(node)
    return tr("{piece}  {probability}\nscore {score} · rank {rank} · {fate}").format(
        piece=token_text(candidate.piece, candidate.special),
        probability=words.percent(candidate.probability),
        score=words.decimal(candidate.score),
        rank=candidate.rank,
        fate=tr(_FATE_WORDS[candidate.fate]),
    )


def _facts(candidate: BeamCandidate, step: BeamStep) -> str:
    parts = [tr("step {step}").format(step=step.step + 1)]
    if depth.current_depth() == depth.PLAIN:
        return " · ".join((*parts, share(candidate.probability)))
    digits = depth.pick(2, 2, 4)
    parts += [
        tr("score {score}").format(score=words.decimal(candidate.score, digits)),
        tr("log p {log_probability}").format(log_probability=words.decimal(candidate.log_probability, digits)),
    ]
    if candidate.diversity_penalty:
        parts.append(tr("diversity −{penalty:.2f}").format(penalty=candidate.diversity_penalty))
    return " · ".join(parts)


def _groups(step: BeamStep) -> int:
    return len({candidate.group for candidate in step.candidates})


def _competitor_rows(candidate: BeamCandidate, step: BeamStep) -> tuple[ReportRow, ...]:
    """Return rows for the node and its nearest competitors, by rank."""
    rivals = sorted((c for c in step.candidates if c.group == candidate.group), key=lambda c: c.rank)
    place = next(n for n, rival in enumerate(rivals) if rival.node == candidate.node)
    first = max(0, min(place - MAX_ROWS // 2, len(rivals) - MAX_ROWS))
    return tuple(_row(rival, rival.node == candidate.node) for rival in rivals[first : first + MAX_ROWS])


def _row(rival: BeamCandidate, own: bool) -> ReportRow:
    cells = (f"{rival.rank}. {token_text(rival.piece, rival.special)}", words.decimal(rival.log_probability),
             words.decimal(rival.score), tr(_FATE_WORDS[rival.fate]))  # fmt: skip
    return ReportRow(cells, strong=own, faint=rival.fate == "pruned")


def score_formula(tree: BeamTree, candidate: BeamCandidate, step: BeamStep) -> str:
    """Return the node's score: `Σ log p ÷ length^penalty` with its figures."""
    length, penalty = step.step + 1, step.length_penalty
    parent = tree.candidate(candidate.parent).score if candidate.parent in tree else 0.0
    before, own, score, final = (
        words.decimal(value, 3) for value in (parent, candidate.log_probability, candidate.score, candidate.normalized)
    )
    divisor = f"{length}" if penalty == 1 else f"{length}^{penalty:g}".replace("-", "−")
    return f"{before} + ({own}) = {score}\n{score} ÷ {divisor} = {final}"
