"""Finds the token sequences that spell words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from decodescope.app.session.queries.base import Query, Report

if TYPE_CHECKING:
    from decodescope.app.session.local_models import LocalModels


@dataclass(frozen=True)
class WordSpellingsQuery(Query):
    """Query for the spellings of words by the loaded model of that name."""

    model: str
    words: tuple[str, ...]
    any_case: bool = False
    """Whether the words are also spelled with capital letters."""
    setting: str = ""
    """Name of the setting that contains the words."""
    yields_to_runs: ClassVar[bool] = True

    def run(self, models: LocalModels, report: Report) -> dict[str, list[list[str]]]:
        """Return the texts of the tokens of each spelling by word; empty if the model is not loaded."""
        from decodescope import core

        model = models.find(self.model)
        if model is None or model.tokenizer is None:
            return {}
        return {word: core.word_spelling_texts(model, word, self.any_case) for word in self.words}
