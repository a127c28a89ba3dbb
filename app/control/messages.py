"""What the window has to say: errors with something to do about them, and notices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot

from app.state.requests import ErrorReport
from app.storage.files import StorageError

if TYPE_CHECKING:
    from app.window.main_window import MainWindow

SETUP = "Setup"
"""Kind of the errors that lie in what is set, not in a run: trying the same again would not help."""
_PERMISSIONS = {"PickledWeightsError": "allow_pickle", "RemoteCodeError": "allow_remote_code"}


class Messages(QObject):
    """Feeds the two banners, and does what their buttons promise."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self.errors, self.notices = window.centre.error_banner, window.centre.notice_banner
        self._unsaved: set[str] = set()
        self.errors.actionChosen.connect(self._on_action)

    @Slot(object)
    def show_error(self, error: ErrorReport) -> None:
        """Say what went wrong, why, and what to do; the setting to blame gets the focus."""
        actions = [("retry", "Try again")] if error.kind != SETUP else []
        if error.kind in _PERMISSIONS:
            actions = [(_PERMISSIONS[error.kind], "Allow for this model")]
        self.errors.show_message(error.title, error.cause, error.remedy, error.details, actions)
        row = self._window.setup.parameters.rows.get(error.parameter)
        if row is not None:
            row.editor.setFocus()

    def show_setup_error(self, title: str, cause: str, remedy: str = "") -> None:
        """Something in what is set must be changed first."""
        self.show_error(ErrorReport(title, cause, remedy, kind=SETUP))

    @Slot(str)
    def show_notice(self, text: str, title: str = "Good to know") -> None:
        """Something to know that stopped nothing."""
        self.notices.show_message(title, text)

    def show_unsaved(self, error: StorageError) -> None:
        """Something could not be kept; each cause is told once, for every later save would tell it again."""
        if error.cause not in self._unsaved:
            self._unsaved.add(error.cause)
            self.show_notice(str(error), error.title)

    @Slot()
    def dismiss(self) -> None:
        """Close whatever is open."""
        self.errors.dismiss()
        self.notices.dismiss()

    @Slot(str)
    def _on_action(self, action: str) -> None:
        if action in _PERMISSIONS.values():
            self._window.controller.allow(action)
            self._window.save_settings()
        if action != "dismiss":
            self._retry()

    def _retry(self) -> None:
        """What failed once more: the run, or the loading of a model."""
        last = self._window.session.run
        if last is not None and last.outcome is not None and last.outcome.kind == "failed":
            self._window.run()
        else:
            self._window.controller.warm_up()
