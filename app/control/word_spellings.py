"""Shows by which tokens the words of the settings are found, as soon as a model is loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from PySide6.QtCore import QObject, QTimer, Slot

from decodescope.app.panels.parameter_panel import ParameterPanel
from decodescope.app.panels.words_editor import WordsEditor
from decodescope.app.session.queries.base import Answer, Query, Report
from decodescope.app.session.session import Session
from decodescope.core.common.lightweight_dataclass import plain

if TYPE_CHECKING:
    from decodescope.app.session.local_models import LocalModels

DELAY_MS = 200
"""Delay after the last change."""
_ANY_CASE = "{setting}_any_case"
"""Name of the setting by which the words of a setting are also spelled with capital letters."""


@plain(frozen=True)
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


class WordSpellingsController(QObject):
    """Requests the spellings of the words in the editors of a panel, and shows them there."""

    def __init__(self, session: Session, panel: ParameterPanel) -> None:
        super().__init__(panel)
        self._session, self._panel = session, panel
        self._queries: dict[str, WordSpellingsQuery] = {}
        """The latest query of each setting."""
        self._timer = QTimer(self, singleShot=True, interval=DELAY_MS)
        self._timer.timeout.connect(self._request)
        panel.changed.connect(self._schedule)
        session.modelReady.connect(self._schedule)
        session.answered.connect(self._on_answer)

    @Slot()
    def stop(self) -> None:
        """Stop the timer."""
        self._timer.stop()

    @Slot()
    def _schedule(self) -> None:
        if self._editors:
            self._timer.start()

    @property
    def _editors(self) -> dict[str, WordsEditor]:
        """The editors of words that exist, by setting."""
        editors = ((name, row.editor) for name, row in self._panel.created_rows.items())
        return {name: editor for name, editor in editors if isinstance(editor, WordsEditor)}

    @Slot()
    def _request(self) -> None:
        info, values = self._session.model, self._panel.values()
        for name, editor in self._editors.items():
            if info is None or not editor.words:
                self._queries.pop(name, None)
                editor.show_spellings({})
                continue
            any_case = bool(values.get(_ANY_CASE.format(setting=name)))
            query = WordSpellingsQuery(info.name, editor.words, any_case, name)
            if self._queries.get(name) != query:
                self._queries[name] = query
                self._session.request(query)

    @Slot(object)
    def _on_answer(self, answer: Answer) -> None:
        query = answer.query
        if not isinstance(query, WordSpellingsQuery) or self._queries.get(query.setting) is not query:
            return
        editor = self._editors.get(query.setting)
        if editor is not None and isinstance(answer.result, dict):
            editor.show_spellings(answer.result)
        if not answer.result:
            del self._queries[query.setting]  # requested again once the model is loaded
