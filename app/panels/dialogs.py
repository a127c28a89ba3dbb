"""Small windows that list something: the keys, the settings of the last run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialogButtonBox, QGridLayout, QLabel, QScrollArea, QVBoxLayout, QWidget

from app.panels.shortcuts import SHORTCUTS
from app.state import setting_values
from app.state.run import Run
from app.state.setting_changes import SettingChange
from app.widgets.dialog import BaseDialog
from app.widgets.plain_text import PlainLabel, window_title
from core import cache_title, strategy_title, words
from resources.language import tr

if TYPE_CHECKING:
    from core.events import RunStarted

TableRows = Iterable[tuple[str, str]]


class TableDialog(BaseDialog):
    """Headed groups of two columns; the text can be selected and copied."""

    def __init__(self, title: str, groups: Iterable[tuple[str, TableRows]], name: str, parent: QWidget | None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setWindowTitle(window_title(title))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        content = QWidget()
        self._grid = QGridLayout(content)
        self._grid.setHorizontalSpacing(28)
        self._grid.setColumnStretch(1, 1)
        for heading, rows in groups:
            self._add_group(heading, rows)
        scroll = QScrollArea(widgetResizable=True)
        scroll.setWidget(content)
        scroll.setAccessibleName(title)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.close)
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 16, 20, 16)
        column.addWidget(scroll)
        column.addWidget(buttons)
        size = content.sizeHint()
        self.resize(max(420, size.width() + 70), min(620, size.height() + 110))

    def _add_group(self, heading: str, rows: TableRows) -> None:
        if heading:
            self._put(heading.upper(), 0, "heading")
        for left, right in rows:
            self._put(left, 0, "muted")
            row = self._grid.rowCount() - 1
            self._grid.addWidget(self._label(right, ""), row, 1)
        self._grid.setRowMinimumHeight(self._grid.rowCount(), 10)

    def _put(self, text: str, column: int, role: str) -> None:
        self._grid.addWidget(self._label(text, role), self._grid.rowCount(), column)

    @staticmethod
    def _label(text: str, role: str) -> QLabel:
        label = PlainLabel(text)
        label.setProperty("role", role)
        label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        return label


def shortcuts_dialog(parent: QWidget | None) -> TableDialog:
    """Every key of the program, grouped."""
    names = dict.fromkeys(shortcut.group for shortcut in SHORTCUTS)
    groups = ((tr(name), [(s.label, tr(s.title)) for s in SHORTCUTS if s.group == name and s.keys]) for name in names)
    return TableDialog(tr("Keyboard shortcuts"), groups, "shortcutsDialog", parent)


def used_settings_dialog(run: Run, changes: Sequence[SettingChange], parent: QWidget | None) -> TableDialog:
    """What the last run really used, as the core resolved it, and what is set otherwise by now."""
    started = run.started
    rows: list[tuple[str, str]] = []
    differing: list[tuple[str, str]] = []
    if started is not None:
        rows = _remote_rows(run, started) if started.engine else _local_rows(started)
        differing = [(name, setting_values.format_text(value) or str(value)) for name, value in started.settings]
    groups = [(tr("The run"), rows), (tr("Settings that differ from the defaults"), differing)]
    if changes:
        groups.append((tr("Changed since"), list(changes)))
    return TableDialog(tr("Settings used"), groups, "usedSettingsDialog", parent)


def _local_rows(started: RunStarted) -> list[tuple[str, str]]:
    """Of a model in memory."""
    return [
        (tr("model"), started.model),
        (tr("strategy"), strategy_title(started)),
        (tr("cache"), cache_title(started)),
        (tr("device"), f"{started.device}, {started.dtype}"),
        (tr("seed"), str(started.seed)),
        (tr("prompt"), words.count(len(started.prompt), "token")),
    ]


def _remote_rows(run: Run, started: RunStarted) -> list[tuple[str, str]]:
    """Of a model on another machine: the prompt's tokens as far as its engine counts them."""
    read = run.finished.metrics.prompt_tokens if run.finished is not None else 0
    rows = [
        (tr("model"), started.model),
        (tr("strategy"), strategy_title(started)),
        (tr("engine"), f"{started.engine}, {started.device}"),
        (tr("seed"), str(started.seed)),
    ]
    return [*rows, (tr("prompt"), words.count(read, "token"))] if read else rows


def about_dialog(version: str, parent: QWidget | None) -> TableDialog:
    """Name, purpose, version and licence of the program."""
    privacy = tr(
        "Models run on this computer. Nothing is sent anywhere unless you download a model or connect to an engine."
    )
    rows = [
        (tr("Purpose"), tr("A playground for text generation: watch every token being chosen.")),
        (tr("Version"), version),
        (tr("Licence"), tr("MIT. The libraries it uses have licences of their own.")),
        (tr("Privacy"), privacy),
    ]
    return TableDialog(tr("About Decodescope"), [("Decodescope", rows)], "aboutDialog", parent)
