"""Text for a bug report: versions, the system, what is chosen. It contains no prompt, no path and no name of a user."""

from __future__ import annotations

import os
import platform
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from PySide6.QtCore import QObject, Slot, qVersion
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

import resources
from app.control.messages import Messages
from app.control.requests import ChosenSettings
from app.session.session import Session
from app.storage.settings import Settings
from app.widgets.screen import screen_of
from resources import language
from resources.language import tr

DISTRIBUTIONS = ("PySide6-Essentials", "torch", "transformers", "tokenizers", "numpy")


class Diagnostics(QObject):
    """Collects the text and puts it on the clipboard."""

    def __init__(
        self, over: QWidget, session: Session, chosen: ChosenSettings, settings: Settings, messages: Messages
    ) -> None:
        super().__init__(over)
        self._over, self._session, self._chosen = over, session, chosen
        self._settings, self._messages = settings, messages

    @Slot()
    def copy(self) -> None:
        """Put the text on the clipboard and say so."""
        QGuiApplication.clipboard().setText(self.text())
        self._messages.show_notice(
            tr("Paste it into a bug report. It contains no prompt, no file name and nothing about you."),
            tr("The diagnostics were copied"),
        )

    def text(self) -> str:
        """One line each; in English, for those who read the report."""
        return "\n".join(f"{name}: {value}" for name, value in self._lines()) + "\n"

    def _lines(self) -> Iterator[tuple[str, object]]:
        yield "Decodescope", own_version()
        yield "Python", f"{platform.python_version()} ({platform.python_implementation()})"
        for name in DISTRIBUTIONS:
            yield name, version_of(name)
        yield "Qt", f"{qVersion()}, platform {QGuiApplication.platformName()}"
        yield "system", f"{platform.system()} {platform.release()}, {platform.machine()}"
        yield "processors", os.cpu_count() or "unknown"
        screen = screen_of(self._over)
        yield "screen", f"{screen.size().width()} x {screen.size().height()}, ratio {screen.devicePixelRatio():g}"
        yield "language", language.current_language()
        appearance, compute = self._settings.appearance, self._settings.compute
        yield "appearance", f"{appearance.theme}, text {round(100 * appearance.font_scale)} %, {appearance.depth} words"
        yield "compute settings", f"device {compute.device}, number type {compute.dtype}, threads {compute.threads}"
        yield "chosen", f"{self._chosen.strategy.name}, cache {self._chosen.cache.name}"
        run = self._session.run
        started = run.started if run is not None else None
        if started is not None:
            yield "last run", f"{started.strategy}, cache {started.cache}, {started.device}, {started.dtype}"
        if run is not None and run.outcome is not None:
            yield "it ended as", run.outcome.kind


def version_of(distribution: str) -> str:
    """The version of an installed distribution; "not installed" where there is none."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "not installed"


def own_version() -> str:
    """The version of this program: as installed, or as the checkout has it."""
    if (installed := version_of("decodescope")) != "not installed":
        return installed
    try:
        project = tomllib.loads((Path(resources.__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
        return f"{project['project']['version']} (from source)"
    except (OSError, ValueError, KeyError):
        return "unknown"
