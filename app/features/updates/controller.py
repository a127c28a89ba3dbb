"""Check for a new version once a week, if the user has switched that on."""

from __future__ import annotations

import time

from PySide6.QtCore import QObject, QUrl, Signal, Slot
from PySide6.QtGui import QDesktopServices

from decodescope.app.control.messages import Messages
from decodescope.app.features.updates.state import (
    ReleaseNotice,
    UpdateError,
    UpdateSource,
    is_newer,
    read_source,
    verify_notice,
    why_unavailable,
)
from decodescope.app.session.background_tasks import BackgroundTask, TaskManager
from decodescope.app.state.versions import own_version
from decodescope.app.storage.settings import UpdatesSection
from decodescope.resources.language import join_sentences, mark, tr

DAYS_BETWEEN = 7
_SECONDS_PER_DAY = 86_400
_CHECK = "updates"
_OPEN_PAGE = "open_release_page"
TITLE = mark("New version")


class UpdateController(QObject):
    """Requests the notice when it is due and shows what is new. `checked`: a check has ended, and its day is kept."""

    checked = Signal()

    def __init__(self, parent: QObject, settings: UpdatesSection, messages: Messages) -> None:
        super().__init__(parent)
        self._settings, self._messages = settings, messages
        self._tasks = TaskManager(self)
        self._page = ""
        messages.noticeAction.connect(self._on_action)

    @property
    def source(self) -> UpdateSource | None:
        """The address where new versions are announced."""
        return read_source()

    def is_due(self, today: int) -> bool:
        """Return whether to check on this day (counted since 1970): switched on, agreed to, and not done this week."""
        on = self._settings.check and self._settings.agreed
        return on and not self._settings.last_day <= today < self._settings.last_day + DAYS_BETWEEN

    @Slot()
    def check_if_due(self) -> None:
        """Check in the background if it is due and possible; otherwise contact nothing."""
        today = int(time.time() // _SECONDS_PER_DAY)
        source = self.source
        if not self.is_due(today) or source is None or why_unavailable(source) or self._tasks.is_running(_CHECK):
            return

        def work(task: BackgroundTask) -> None:
            from decodescope.app.features.updates.session import fetch_notice  # HTTP is slow to import

            try:
                notice = verify_notice(fetch_notice(source.address), source.public_key)
            except UpdateError as error:
                task.post(self._on_failed, source, error, today)
            else:
                task.post(self._on_notice, notice, today)

        self._tasks.start(_CHECK, work)

    @Slot()
    def stop(self) -> None:
        """Forget a check in progress."""
        self._tasks.stop_all()

    def _on_notice(self, notice: ReleaseNotice, today: int) -> None:
        self._settings.last_day = today
        if is_newer(notice.version, own_version()):
            self._page = notice.page
            text = tr("Decodescope {version} is available; this is {own}.").format(
                version=notice.version, own=own_version()
            )
            self._messages.show_notice(text, tr(TITLE), [(_OPEN_PAGE, tr("Open its page"))])
        self.checked.emit()

    def _on_failed(self, source: UpdateSource, error: UpdateError, today: int) -> None:
        """Show an answer that cannot be trusted. Without a network there is nothing to say, and tomorrow is a try."""
        if error.is_suspicious:
            self._settings.last_day = today
            problem = tr("The answer of {address} was not used.").format(address=source.address)
            self._messages.show_notice(join_sentences(problem, error.cause), tr(TITLE))
        self.checked.emit()

    @Slot(str)
    def _on_action(self, name: str) -> None:
        if name == _OPEN_PAGE and self._page:
            QDesktopServices.openUrl(QUrl(self._page))
