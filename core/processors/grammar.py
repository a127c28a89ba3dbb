"""Grammar: only tokens that can still lead to a text of a JSON schema, a regular expression, a grammar or a choice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from decodescope.core.errors import ParameterError
from decodescope.core.grammar.grammar_setting import KINDS, GrammarProgress, grammar_kind
from decodescope.core.parameter import WORDS, Parameter
from decodescope.core.processors.base import Context, Processor, is_given
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import torch

    from decodescope.core.grammar.grammar_matcher import GrammarMatcher


class GrammarProcessor:
    """Sets the scores of tokens that violate the grammar to −∞.

    A row whose text does not match the grammar (a rejected draft, a finished text) is left unchanged.
    """

    def __init__(self, matcher: GrammarMatcher, start: int, skipped: int) -> None:
        """Create the stage. `skipped`: number of first tokens of the answer that are not part of the text."""
        self.matcher, self._start, self._skipped = matcher, start + skipped, skipped

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Return masked scores [B, V]; `ids` [B, T] from `start` on are partial texts of the grammar."""
        import torch

        if ids.shape[1] < self._start:
            return scores
        texts: list[list[int]] = ids[:, self._start :].tolist()
        masks = [self.matcher.forbidden_mask(row, text) for row, text in enumerate(texts)]
        if len(masks) == 1:
            return scores if masks[0] is None else scores.masked_fill(masks[0], -float("inf"))
        nothing = torch.zeros(scores.shape[-1], dtype=torch.bool, device=scores.device)
        return scores.masked_fill(torch.stack([nothing if mask is None else mask for mask in masks]), -float("inf"))

    def reorder(self, rows: torch.Tensor) -> None:
        """Reorder the rows: new row i is old row `rows[i]`."""
        self.matcher.reorder(rows.tolist())

    def progress(self, answer: Sequence[int]) -> GrammarProgress:
        """Return the progress of an answer, including its required beginning but not its end token."""
        return self.matcher.progress(list(answer[self._skipped :]))


def make(value: Mapping[str, object], context: Context) -> GrammarProcessor:
    """Compile the grammar for the model's tokens. Raises ParameterError."""
    from decodescope.core.grammar.compilation import GrammarVocabulary, grammar_error, matcher_for
    from decodescope.core.grammar.grammar_matcher import GrammarMatcher

    model = context.model
    if model.token_bytes is None:
        raise grammar_error(tr("the model has no tokenizer, so the text of its tokens is unknown."))
    ends = () if context.eos is None else tuple(context.eos.tolist())
    vocabulary = GrammarVocabulary(model.token_bytes, model.pieces.__getitem__, ends, model.strategy_data)
    matcher = matcher_for(vocabulary, value, model.strips_first_space(context.before))
    walker = GrammarMatcher(matcher, model.vocabulary, model.device)
    if not walker.is_valid_prefix(context.beginning):
        raise grammar_error(tr("no text of it begins like the required beginning of the answer."))
    forced = context.settings.get("forced_bos_token_id") is not None  # a special token, not part of the text
    _check_length(value, context, forced)
    return GrammarProcessor(walker, context.start, int(forced))


def _check_length(value: Mapping[str, object], context: Context, forced: bool) -> None:
    """Raise ParameterError if no text of the grammar fits into the run."""
    from decodescope.core.grammar.compilation import grammar_error
    from decodescope.core.grammar.shortest_text import min_tokens

    room = context.max_length - context.start - forced
    model = context.model
    min_length = min_tokens(value, model.token_bytes or (), room, model.strategy_data)
    if min_length is None:
        raise grammar_error(
            tr("these rules never allow a text to end: each text contains another one of the same kind.")
            if grammar_kind(value) in ("lark", "gbnf")
            else tr("this schema never allows a text to end: each text contains another one of the same kind.")
        )
    if min_length > room:
        raise ParameterError(
            tr("No text of the grammar fits into {limit:,} new tokens: the shortest takes at least {least:,}.").format(
                limit=room, least=min_length
            ),
            tr("Allow more new tokens, or relax the grammar."),
            PROCESSOR.name,
        )


PROCESSOR = Processor(
    name="grammar",
    make=make,
    order=152,
    label=mark("grammar"),
    phrase=mark("the grammar"),
    plain_phrase=mark("the required format"),
    kind="ban",
    parameter=Parameter(
        "grammar", mark("Grammar"), "grammar", None,
        mark("Generate only texts of this form: JSON by a schema, a regular expression, a Lark or GBNF grammar, "
            "or one of several texts."),
        choices=KINDS, option=True, advanced=True, extra="grammar", group=WORDS,
    ),
    shown=5,
    is_on=is_given,
    reorder_rows=GrammarProcessor.reorder,
    before_contrast=True,
    progress=GrammarProcessor.progress,
    score_rule="token",
)  # fmt: skip
