"""A round of speculation as a tree for the canvas and texts for the inspector. No Qt in here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from decodescope.app.state.draft_rounds import DraftRounds, proposers
from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import RunRequest
from decodescope.app.views.node_reports import NodeReport, ReportRow
from decodescope.app.views.text.token_wording import token_text
from decodescope.app.widgets.drafter_marks import drafter_letter
from decodescope.app.widgets.tree_canvas.tree_model import TreeNode
from decodescope.core import (
    SentenceTemplate,
    explain_choice,
    explain_draft,
    explain_extra,
    explain_pool,
    explain_round,
    is_residual_ratio,
    share,
    strategies,
    words,
)
from decodescope.core.events import DraftNode, DraftRound, Finished
from decodescope.resources.language import join_sentences, mark, tr

EXTRA_NODE = -1
"""Number of the node for the bonus or correction token."""
_VERDICTS = {"accepted": mark("Accepted."), "refused": mark("Rejected."), "unreached": mark("Never reached.")}

_PROBABILITIES = SentenceTemplate(
    mark("the quick guess gave it {draft}, the model {target}"),
    mark("draft {draft} · target {target}"),
    mark("id {id} · depth {depth} · q = {draft} · p = {target}"),
)
_FATE_WORDS = {"accepted": mark("accepted"), "refused": mark("rejected"), "unreached": mark("not reached")}


def drafter_names(request: RunRequest) -> tuple[str, ...]:
    """Return the names of the run's drafters; models without their folders."""
    models = tuple(Path(name).name for name in request.draft_names)
    strategy = strategies.registry.get(request.strategy)  # the strategy of a recorded run may not exist here
    return (*models, *(strategy.drafts_from(request.options) if strategy is not None else ()))


def round_tree(entry: DraftRound, before: str, drafters: int = 1) -> list[TreeNode]:
    """Return the canvas nodes of a round; `before` is the last word of the text so far. With several drafters, nodes
    have drafter marks.
    """
    nodes = [TreeNode(0, None, before, state="root")]
    nodes += [
        TreeNode(
            node.node,
            node.parent,
            token_text(node.piece, node.special),
            value=_brief_probability(node.draft_probability),
            weight=node.draft_probability,
            state=node.fate,
            drafters=proposers(node) if drafters > 1 else (),
        )
        for node in entry.nodes
    ]
    if entry.extra_kind != "none":
        end = entry.accepted[-1] if entry.accepted else 0
        nodes.append(
            TreeNode(EXTRA_NODE, end, token_text(entry.extra_piece, entry.extra_special), state=entry.extra_kind)
        )
    return nodes


def _brief_probability(share: float) -> str:
    """Format a probability: `.46`; `1` for certainty."""
    return "1" if share >= 0.995 else f"{share:.2f}".lstrip("0")


def describe_round(entry: DraftRound, drafters: Sequence[str] = ()) -> str:
    """Describe the round with its times, and why a drafter was chosen if there was a choice."""
    heading = tr("Round {round}: {what}").format(round=entry.round + 1, what=explain_round(entry))
    what = join_sentences(heading, explain_choice(entry, drafters), explain_pool(entry))
    if not entry.verify_seconds:  # reproducible pictures show no times
        return what
    times = tr("{drafting:.1f} ms drafting, {checking:.1f} ms verification.").format(
        drafting=entry.draft_seconds * 1000, checking=entry.verify_seconds * 1000
    )
    return join_sentences(what, times)


def node_report(entry: DraftRound, number: int, drafters: Sequence[str] = ()) -> NodeReport:
    """Return the inspector's report on a node of the round. Raises KeyError for the text before it."""
    if number == EXTRA_NODE:
        return _extra_token_report(entry)
    node = {node.node: node for node in entry.nodes}[number]
    several = len(drafters) > 1
    return NodeReport(
        heading=tr("Drafted node"),
        term="draft",
        token=token_text(node.piece, node.special),
        facts=_facts(node, several),
        sentence=explain_draft(node, entry, drafters),
        verdict=tr(_VERDICTS[node.fate]),
        table_title=tr("Alternatives"),
        columns=(tr("token"), tr("draft"), tr("target"), ""),
        rows=_sibling_rows(entry, node, several),
        formula=_formula(node, entry),
        formula_title=tr("Draw and ratio"),
    )


def _facts(node: DraftNode, several: bool) -> str:
    """Return `by A · draft 46 % · target 31 %`, at the current level of detail; drafters are named if there are
    several.
    """
    draft, target = share(node.draft_probability, is_exact=True), share(node.target_probability)
    shares = str(_PROBABILITIES.words(draft=draft, target=target, id=f"{node.id:,}", depth=f"{node.depth:,}"))
    if not several:
        return shares
    by = tr(" and ").join(map(drafter_letter, proposers(node)))
    return tr("by {drafters} · {shares}").format(drafters=by, shares=shares)


def _extra_token_report(entry: DraftRound) -> NodeReport:
    bonus = entry.extra_kind == "bonus"
    return NodeReport(
        heading=tr("Bonus token") if bonus else tr("Correction"),
        term="bonus" if bonus else "residual",
        token=token_text(entry.extra_piece, entry.extra_special),
        facts=tr("round {round}").format(round=entry.round + 1),
        sentence=explain_extra(entry),
        verdict=tr("Bonus.") if bonus else tr("Corrected."),
    )


def _sibling_rows(entry: DraftRound, node: DraftNode, several: bool) -> tuple[ReportRow, ...]:
    """Return rows for the node and its siblings, likeliest draft first."""
    siblings = sorted((n for n in entry.nodes if n.parent == node.parent), key=lambda n: -n.draft_probability)

    def cells(n: DraftNode) -> tuple[str, ...]:
        by = f" · {''.join(map(drafter_letter, proposers(n)))}" if several else ""
        shares = (words.percent(n.draft_probability, is_exact=True), words.percent(n.target_probability))
        return (token_text(n.piece, n.special) + by, *shares, tr(_FATE_WORDS[n.fate]))

    return tuple(ReportRow(cells(n), strong=n.node == node.node, faint=n.fate == "unreached") for n in siblings)


def _formula(node: DraftNode, entry: DraftRound) -> str:
    """Return the decision with its figures, if it was random."""
    if node.ratio is None or node.die is None:
        return ""
    sign = "<" if node.fate == "accepted" else "≥"
    digits = next((n for n in range(2, 9) if f"{node.ratio:.{n}f}" != f"{node.die:.{n}f}"), 9)
    formula = (
        tr("min(1, p′ ÷ q) = {ratio}\nrandom {die} {sign} {ratio}")
        if is_residual_ratio(node, entry)
        else tr("min(1, p ÷ q) = {ratio}\nrandom {die} {sign} {ratio}")
    )
    return formula.format(ratio=f"{node.ratio:.{digits}f}", die=f"{node.die:.{digits}f}", sign=sign)


def speed_rows(drafted: Finished | None, plain: Finished | None) -> list[tuple[str, str, str]]:
    """Return the rows (name, plain, drafted) of the speed card, with a dash for unmeasured values."""
    drafted_metrics, plain_metrics = (end.metrics if end else None for end in (drafted, plain))

    def figure(value: float | None, digits: int = 0) -> str:
        return "–" if value is None else f"{value:,.{digits}f}"

    speed = [m.decode_tokens_per_second if m else None for m in (plain_metrics, drafted_metrics)]
    passes = [m.tokens_per_target_pass if m else None for m in (plain_metrics, drafted_metrics)]
    acceptance_rate = drafted_metrics.acceptance_rate if drafted_metrics else None
    gain = speed[1] / speed[0] if speed[0] and speed[1] else None
    return [
        (tr("tokens / s"), figure(speed[0]), figure(speed[1])),
        (tr("tokens / pass"), figure(passes[0], 1), figure(passes[1], 1)),
        (tr("accepted"), "–", "–" if acceptance_rate is None else words.percent(acceptance_rate, is_exact=True)),
        (tr("speed-up"), "×1" if gain else "–", f"×{gain:.2f}" if gain else "–"),
        (
            tr("by formula"),
            "",
            f"×{drafted_metrics.predicted_speedup:.2f}"
            if drafted_metrics and drafted_metrics.predicted_speedup
            else "–",
        ),
    ]


_NO_ROUNDS = DraftRounds()


class RoundSelection:
    """A run and the number of one of its rounds; -1 before the first."""

    def __init__(self) -> None:
        self.begin(None)

    def begin(self, run: Run | None) -> None:
        """Switch to another run, from its start; None for no run."""
        self.run = run
        self.number = -1
        self._follows_newest = True

    @property
    def rounds(self) -> DraftRounds:
        """All rounds of the run so far."""
        return self.run.rounds if self.run is not None else _NO_ROUNDS

    @property
    def count(self) -> int:
        """Number of rounds that started before the cursor."""
        return self.rounds.count_started(self.run.cursor) if self.run is not None else 0

    @property
    def entry(self) -> DraftRound | None:
        """The selected round."""
        return self.rounds.rounds[self.number] if 0 <= self.number < len(self.rounds) else None

    def update(self, run: Run, follow_newest: bool = False) -> None:
        """Update after the run has grown or its cursor has moved; `follow_newest`: follow the newest round again."""
        self.run = run
        self._follows_newest = self._follows_newest or follow_newest
        last = self.count - 1
        self.number = last if self._follows_newest else min(self.number, last)

    def pick(self, number: int) -> None:
        """Select a round; selecting the last one follows the newest from then on."""
        self._follows_newest = number == self.count - 1
        self.number = number

    def neighbour(self, offset: int) -> int:
        """Return the number of the round `offset` steps away, limited to existing ones."""
        return min(max(0, self.number + offset), self.count - 1)

    def show_token(self, token: int | None) -> bool:
        """Select the round that generated a token; return False if nothing changes."""
        number = self.rounds.round_of(token) if token is not None else None
        if number is None or number == self.number or number >= self.count:
            return False
        self._follows_newest, self.number = False, number
        return True

    @property
    def drafters(self) -> tuple[str, ...]:
        """Names of the run's drafters."""
        return drafter_names(self.run.request) if self.run is not None else ()

    @property
    def word_before(self) -> str:
        """The last token before the round, used as the root of its tree."""
        run, step = self.run, self.entry.step if self.entry is not None else 0
        if run is None:
            return "…"
        if step and step <= len(run.tokens):
            return f"…{token_text(run.tokens[step - 1].piece, run.tokens[step - 1].is_special)}"
        return f"…{token_text(run.before[-1].text, run.before[-1].special)}" if run.before else tr("start")
