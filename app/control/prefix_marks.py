"""Marks in the prompt what the next run has to read anew, where what earlier ones have read is kept."""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer, Slot

from app.control.model_loading import ModelLoadController
from app.panels.prompt import PromptPanel
from app.session.session import Session
from app.state.prompt_reuse import estimate_reuse
from app.storage.settings import ComputeSection
from core import words
from resources.language import tr


class ReuseMarks(QObject):
    """Looks once for every turn of the event loop in which something changed."""

    def __init__(
        self, panel: PromptPanel, session: Session, loading: ModelLoadController, compute: ComputeSection
    ) -> None:
        super().__init__(panel)
        self._panel, self._session, self._loading, self._compute = panel, session, loading, compute
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self.update_marks)
        for signal in (panel.edited, session.runStarted, session.runShown, session.finished):
            signal.connect(self._schedule)

    @Slot()
    def _schedule(self) -> None:
        self._timer.start(0)

    @Slot()
    def update_marks(self) -> None:
        """Compare what stands there with the prompt of the shown run."""
        run, panel = self._session.run, self._panel
        keeps = self._compute.prefix_budget > 0 and run is not None and run.request.prefix_budget > 0
        is_same_model = run is not None and run.request.load == self._loading.request()
        if panel.is_chat or not keeps or not is_same_model:
            panel.show_reuse(None, "")
            return
        reuse = estimate_reuse(run, panel.editor.toPlainText())
        caption = (
            tr("{tokens} read already, the rest anew").format(tokens=words.count(reuse.tokens, "token"))
            if reuse
            else ""
        )
        panel.show_reuse(reuse.characters if reuse else None, caption)
