"""Messages of the window: errors with remedies, and notices."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject, Signal, Slot

from decodescope.app.panels.parameter_panel import ParameterPanel
from decodescope.app.state.worker_messages import ErrorReport
from decodescope.app.widgets.banner import Banner
from decodescope.resources.language import tr

SETUP = "Setup"
"""Kind of errors in the settings rather than in a run; retrying does not help."""
_TOO_LARGE = "ModelTooLargeError"
PROMPT_TOO_LONG = "PromptTooLongError"
"""Kind of the error of a prompt that is longer than the model's context."""
DISK_OFFER = "as_fits"
"""Name of the button that keeps on the disk what does not fit in memory."""
_PERMISSIONS = {"PickledWeightsError": "allow_pickle", "RemoteCodeError": "allow_remote_code"}


class Messages(QObject):
    """Controls the two banners and emits the actions of their buttons: `retryRequested`, `allowed(permission)`,
    `offerAccepted(name)`, and `noticeAction(name)` for notices. `errorDismissed`: the error was closed.
    """

    retryRequested = Signal()
    allowed = Signal(str)
    offerAccepted = Signal(str)
    noticeAction = Signal(str)
    errorDismissed = Signal()

    def __init__(self, errors: Banner, notices: Banner, parameters: ParameterPanel) -> None:
        super().__init__(errors)
        self._errors, self._notices, self._parameters = errors, notices, parameters
        self._error: ErrorReport | None = None
        self._offers: dict[str, Callable[[], Sequence[tuple[str, str]]]] = {}
        self._offered: set[str] = set()
        """Names of the offers of the error that is shown."""
        errors.actionChosen.connect(self._on_action)
        notices.actionChosen.connect(self.noticeAction)

    @property
    def error(self) -> ErrorReport | None:
        """The error that is shown now."""
        return self._error if not self._errors.isHidden() else None

    @property
    def notice(self) -> tuple[str, str, list[tuple[str, str]]] | None:
        """Title, text and buttons of the open notice; None without one."""
        return self._notices.message if not self._notices.isHidden() else None

    @Slot(object)
    def show_error(self, error: ErrorReport) -> None:
        """Show title, cause and remedy, and focus the parameter that caused the error."""
        self._error = error
        actions = [("retry", tr("Try again"))] if error.kind != SETUP else []
        offers = self._offers[error.kind]() if error.kind in self._offers else ()
        if offers:
            actions = list(offers)
        self._offered = {name for name, _label in offers}
        if error.kind in _PERMISSIONS:
            actions = [(_PERMISSIONS[error.kind], tr("Allow for this model"))]
        if error.kind == _TOO_LARGE:
            actions.append((DISK_OFFER, tr("Keep the rest on the disk")))
        self._errors.show_message(error.title, error.cause, error.remedy, error.details, actions)
        row = self._parameters.rows.get(error.parameter)
        if row is not None:
            row.editor.setFocus()

    def set_offers(self, kind: str, offers: Callable[[], Sequence[tuple[str, str]]]) -> None:
        """Offer what helps, as (name, label), instead of trying an error of that kind again."""
        self._offers[kind] = offers

    @Slot(str, str, str)
    def show_setup_error(self, title: str, cause: str, remedy: str = "") -> None:
        """Show an error that requires a change of the settings."""
        self.show_error(ErrorReport(title, cause, remedy, kind=SETUP))

    @Slot(str)
    @Slot(str, str)
    def show_notice(self, text: str, title: str = "", actions: Sequence[tuple[str, str]] = ()) -> None:
        """Show information that interrupts nothing; `actions` are (name, label)."""
        self._notices.show_message(title or tr("Note"), text, actions=actions)

    def withdraw_notice(self, title: str) -> None:
        """Close the notice with this title, which no longer applies; keep any other."""
        if self._notices.last_title == title:
            self._notices.dismiss()

    @Slot()
    def dismiss(self) -> None:
        """Close all messages."""
        self._errors.dismiss()
        self._notices.dismiss()

    @Slot(str)
    def _on_action(self, action: str) -> None:
        if action in self._offered:
            self.offerAccepted.emit(action)
            return
        if action == DISK_OFFER:
            self.offerAccepted.emit(action)
        if action in _PERMISSIONS.values():
            self.allowed.emit(action)
        if action == "dismiss":
            self.errorDismissed.emit()
        else:
            self.retryRequested.emit()
