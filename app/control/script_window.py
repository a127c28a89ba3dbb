"""The shown run as code, in a window of its own."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QObject, Qt, Slot
from PySide6.QtWidgets import QWidget

import core
from app.control.messages import Messages
from app.session.session import Session
from app.state.run import Run
from app.state.worker_messages import RunRequest
from core.errors import DecodescopeError
from resources.language import mark, tr

_TITLE = mark("Copy as code")


class CodeController(QObject):
    """Writes the code of the session's run, and shows it above the window that `over` lies in."""

    def __init__(self, over: QWidget, session: Session, messages: Messages) -> None:
        super().__init__(over)
        self._over, self._session, self._messages = over, session, messages

    @Slot()
    def show_code(self) -> None:
        """Show the code; a notice where there is none."""
        run = self._session.run
        if run is None:
            self._messages.show_notice(
                tr("Run something first: its code is that of the run that is shown."), tr(_TITLE)
            )
            return
        if run.is_scored:
            self._messages.show_notice(tr("A score is one call: core.score(model, text)."), tr(_TITLE))
            return
        try:
            scripts, reason = run_scripts(run)
        except DecodescopeError as error:
            self._messages.show_notice(str(error), tr(_TITLE))
            return
        from app.panels.code_dialog import CodeDialog

        dialog = CodeDialog(scripts, reason, self._over.window())
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.open()


def run_scripts(run: Run) -> tuple[dict[str, str], str]:
    """A run's scripts by flavour, and why there is but one (empty: there are both). Raises DecodescopeError."""
    request, load, drafters = _with_phrase_ids(run), run.request.load, run.request.draft_names
    kind = load.dtype if load.weights == "auto" else load.weights
    limit = load.memory_limit
    own = core.as_code(
        request, "core", model=load.model, drafters=drafters, device=load.device, dtype=kind, memory_limit=limit
    )
    device, dtype = (run.started.device, run.started.dtype) if run.started else (load.device, load.dtype)
    if reason := core.why_not_generate(
        request, model=load.model, drafters=drafters, device=device, dtype=dtype, memory_limit=limit
    ):
        return {"core": own}, tr("There is no script for transformers: {reason}").format(reason=reason)
    script = core.as_code(request, model=load.model, drafters=drafters, device=device, dtype=dtype)
    return {"transformers": script, "core": own}, ""


def _with_phrase_ids(run: Run) -> RunRequest:
    """The request with the token ids that the run had for phrases."""
    resolved = dict(run.started.settings) if run.started else {}
    config = {name: resolved.get(name, value) for name, value in run.request.config.items()}
    return replace(run.request, config=config)
