"""Grammar: only tokens that can still lead to a text of a JSON schema, a regular expression, a grammar or a choice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.errors import ParameterError
from core.grammar.grammar_setting import KINDS, GrammarProgress
from core.parameter import Parameter
from core.processors.base import Context, Processor, is_given
from resources.language import mark, tr

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import torch

    from core.grammar.grammar_matcher import GrammarMatcher


class GrammarProcessor:
    """The stage: scores of tokens that lead out of the grammar become −∞.

    A row whose text is none of the grammar's (a draft that was refused, a text that has ended) is left as it is.
    """

    def __init__(self, matcher: GrammarMatcher, start: int, skipped: int) -> None:
        """`skipped`: first tokens of the answer that are no part of the text."""
        self.matcher, self._start, self._skipped = matcher, start + skipped, skipped

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Scores [B, V]; `ids` [B, T] from `start` on are texts of the grammar, as far as they have come."""
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
        """Row i was row `rows[i]`."""
        self.matcher.reorder(rows.tolist())

    def progress(self, answer: Sequence[int]) -> GrammarProgress:
        """How far an answer, its beginning included and its end token not, has come."""
        return self.matcher.progress(list(answer[self._skipped :]))


def make(value: Mapping[str, object], context: Context) -> GrammarProcessor:
    """The grammar, compiled for the model's tokens. Raises ParameterError."""
    from core.grammar.compilation import GrammarVocabulary, grammar_error, matcher_for
    from core.grammar.grammar_matcher import GrammarMatcher

    model = context.model
    if model.token_bytes is None:
        raise grammar_error(tr("the model has no tokenizer that says what its tokens spell."))
    ends = () if context.eos is None else tuple(context.eos.tolist())
    vocabulary = GrammarVocabulary(model.token_bytes, model.pieces.__getitem__, ends, model.remembered)
    matcher = matcher_for(vocabulary, value, model.strips_first_space(context.before))
    walker = GrammarMatcher(matcher, model.vocabulary, model.device)
    if not walker.is_valid_prefix(context.beginning):
        raise grammar_error(tr("the answer begins with what no text of it begins with."))
    forced = context.config.forced_bos_token_id is not None  # a special token, and no part of the text
    _check_length(value, context, forced)
    return GrammarProcessor(walker, context.start, int(forced))


def _check_length(value: Mapping[str, object], context: Context, forced: bool) -> None:
    """Raises ParameterError where no text of the grammar fits into the run."""
    from core.grammar.compilation import grammar_error
    from core.grammar.shortest_text import min_tokens

    room = context.max_length - context.start - forced
    model = context.model
    least = min_tokens(value, model.token_bytes or (), room, model.remembered)
    if least is None:
        raise grammar_error(
            tr("no text ever ends by these rules: each holds another one of its own kind.")
            if "lark" in value
            else tr("no text ever ends by this schema: each holds another one of its own kind.")
        )
    if least > room:
        raise ParameterError(
            tr(
                "No text of the grammar is as short as {limit:,} new tokens: the shortest takes {least:,} or more."
            ).format(limit=room, least=least),
            tr("Allow more new tokens, or loosen the grammar."),
            PROCESSOR.name,
        )


PROCESSOR = Processor(
    name="grammar",
    make=make,
    order=152,
    label=mark("grammar"),
    phrase=mark("the grammar"),
    kind="ban",
    parameter=Parameter(
        "grammar", mark("Grammar"), "grammar", None,
        mark("Only texts of this form are written: JSON by a schema, a regular expression, a Lark grammar, or one of "
             "several texts."),
        choices=KINDS, option=True, advanced=True, extra="grammar",
    ),
    shown=5,
    is_on=is_given,
    follow=GrammarProcessor.reorder,
    before_contrast=True,
    progress=GrammarProcessor.progress,
)  # fmt: skip
