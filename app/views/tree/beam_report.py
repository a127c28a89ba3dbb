"""Tells of a beam's node: why it lived or died, whom it competed with, how its score came about. No Qt in here."""

from __future__ import annotations

from app.state.beam_tree import BeamTree
from app.views.node_reports import NodeReport, ReportRow
from app.views.text.token_wording import token_text
from core import explain_candidate, share, words
from core.events import BeamCandidate, BeamFate, BeamStep
from resources import depth
from resources.language import mark, tr, trn

MAX_ROWS = 12
_VERDICTS: dict[BeamFate, str] = {
    "kept": mark("Kept at step {step}."),
    "pruned": mark("Pruned at step {step}."),
    "finished": mark("Finished at step {step}."),
    "early_stopped": mark("Stopped early at step {step}."),
}
_FATE_WORDS: dict[BeamFate, str] = {
    "kept": mark("kept"), "pruned": mark("pruned"), "finished": mark("ended"), "early_stopped": mark("stopped"),
}  # fmt: skip


def beam_node_report(tree: BeamTree, node: int) -> NodeReport:
    """Everything the inspector says of a node. Raises KeyError for the prompt and for strangers."""
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
    """What the inspector says of the root: where the prompt ends, and what was considered first."""
    first = tree.steps[0].candidates if tree.steps else ()
    kept = sum(candidate.fate != "pruned" for candidate in first)
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
        sentence=considered.format(count=len(first), kept=kept) if first else "",
        verdict=tr("Here the prompt ends, and every hypothesis begins."),
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
    """`prompt of 12 tokens`; nothing where there is none."""
    template = trn("prompt of {count:,} token", "prompt of {count:,} tokens", tokens)
    return template.format(count=tokens) if tokens else ""


def beam_node_tooltip(tree: BeamTree | None, node: int) -> str:
    """Two lines on a node for the pointer; nothing for the root."""
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
    """The continuations around it, by rank."""
    rivals = sorted((c for c in step.candidates if c.group == candidate.group), key=lambda c: c.rank)
    place = next(n for n, rival in enumerate(rivals) if rival.node == candidate.node)
    first = max(0, min(place - MAX_ROWS // 2, len(rivals) - MAX_ROWS))
    return tuple(_row(rival, rival.node == candidate.node) for rival in rivals[first : first + MAX_ROWS])


def _row(rival: BeamCandidate, own: bool) -> ReportRow:
    cells = (f"{rival.rank}. {token_text(rival.piece, rival.special)}", words.decimal(rival.log_probability),
             words.decimal(rival.score), tr(_FATE_WORDS[rival.fate]))  # fmt: skip
    return ReportRow(cells, strong=own, faint=rival.fate == "pruned")


def score_formula(tree: BeamTree, candidate: BeamCandidate, step: BeamStep) -> str:
    """`Σ log p ÷ length^penalty` with the node's figures."""
    length, penalty = step.step + 1, step.length_penalty
    parent = tree.candidate(candidate.parent).score if candidate.parent in tree else 0.0
    before, own, score, final = (
        words.decimal(value, 3) for value in (parent, candidate.log_probability, candidate.score, candidate.normalized)
    )
    divisor = f"{length}" if penalty == 1 else f"{length}^{penalty:g}".replace("-", "−")
    return f"{before} + ({own}) = {score}\n{score} ÷ {divisor} = {final}"
