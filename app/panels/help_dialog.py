"""The help window (F1): first steps, what each view shows, the most important keys, and ways to more help."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QDialogButtonBox,
    QGridLayout,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app.panels.commands import COMMANDS
from app.panels.shortcuts import SHORTCUTS, key_of
from app.widgets.dialog import BaseDialog
from app.widgets.plain_text import PlainLabel, tooltip
from resources.language import mark, tr

FIRST_STEPS = (
    (mark("Run"), mark("Write a prompt at the left and press Run. The text appears token by token.")),
    (mark("Read"), mark("Click a token. The inspector at the right shows what else the model could have written.")),
    (mark("Change"), mark("Choose another strategy, cache or model at the top, change a setting, and run again.")),
    (mark("Branch"), mark("Pick another word in the inspector to see how the text would have continued.")),
    (mark("Keep"), mark("The history keeps every run. Export… saves pictures, figures and web pages.")),
)
VIEWS = (
    (mark("Tokens"), mark("The text, coloured by how probable each token was.")),
    (mark("Chat"), mark("The conversation, for models that have a chat template.")),
    (mark("Tree"), mark("The beams, drafts or alternatives that were considered, kept and dropped.")),
    (mark("Speculation"), mark("What a draft model proposed and what the model accepted of it.")),
    (mark("Memory"), mark("How much memory the cache uses, byte by byte.")),
    (mark("Compare"), mark("The same prompt with several strategies or settings, side by side.")),
)
KEYS = ("run", "escape", "open_palette", "run_again", "previous_run", "toggle_history", "choose_tour", "open_shortcuts")
LINKED_COMMANDS = ("choose_tour", "open_glossary", "open_shortcuts", "show_welcome")
"""Commands that have a button at the foot."""


class HelpDialog(BaseDialog):
    """`commandRequested(name)`: one of its buttons was pressed."""

    commandRequested = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("helpDialog")
        self.setWindowTitle(tr("Help"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        content = QWidget()
        self._grid = QGridLayout(content)
        self._grid.setHorizontalSpacing(28)
        self._grid.setColumnStretch(1, 1)
        self._add_group(tr("First steps"), ((tr(name), tr(text)) for name, text in FIRST_STEPS))
        self._add_group(tr("The views"), ((tr(name), tr(text)) for name, text in VIEWS))
        labels = {shortcut.action: (shortcut.label, tr(shortcut.title)) for shortcut in SHORTCUTS}
        self._add_group(tr("The most important keys"), (labels[name] for name in KEYS))
        self._grid.setRowStretch(self._grid.rowCount(), 1)
        scroll = QScrollArea(widgetResizable=True)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setWidget(content)
        scroll.setAccessibleName(tr("Help"))
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 16, 20, 16)
        column.addWidget(scroll, 1)
        column.addWidget(self._buttons())
        metrics = self.fontMetrics()
        self.resize(max(640, 76 * metrics.averageCharWidth()), min(680, 40 * metrics.height()))

    def _add_group(self, heading: str, rows: Iterable[tuple[str, str]]) -> None:
        row = self._grid.rowCount()
        self._grid.addWidget(_label(heading.upper(), "heading"), row, 0, 1, 2)
        for name, text in rows:
            row += 1
            self._grid.addWidget(_label(name, "muted"), row, 0, Qt.AlignmentFlag.AlignTop)
            label = _label(text, "")
            label.setWordWrap(True)
            self._grid.addWidget(label, row, 1)
        self._grid.setRowMinimumHeight(row + 1, 10)

    def _buttons(self) -> QDialogButtonBox:
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        titles = {command.name: command for command in COMMANDS}
        for name in LINKED_COMMANDS:
            button = QPushButton(tr(titles[name].short_title))
            button.setObjectName(f"help.{name}")
            button.setAutoDefault(False)
            if key := key_of(name):
                button.setToolTip(tooltip(key))
            button.clicked.connect(lambda _checked=False, name=name: self._run_command(name))
            buttons.addButton(button, QDialogButtonBox.ButtonRole.ActionRole)
        buttons.rejected.connect(self.close)
        return buttons

    def _run_command(self, name: str) -> None:
        """Close first: what opens then is to have the cursor."""
        self.close()
        self.commandRequested.emit(name)


def _label(text: str, role: str) -> PlainLabel:
    label = PlainLabel(text)
    label.setProperty("role", role)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return label
