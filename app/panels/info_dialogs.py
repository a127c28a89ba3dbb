"""Small dialogs that show tables: keyboard shortcuts, settings of the last run, about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QDialogButtonBox,
    QGridLayout,
    QHBoxLayout,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from decodescope.app.panels.commands import COMMANDS, SHORTCUTS, key_of
from decodescope.app.state import setting_values
from decodescope.app.state.licences import bundled_libraries, third_party_parts
from decodescope.app.state.run import Run
from decodescope.app.state.setting_changes import SettingChange
from decodescope.app.theme.theme import tab_distance
from decodescope.app.widgets.building import arrange, set_up
from decodescope.app.widgets.buttons import SegmentedControl
from decodescope.app.widgets.dialog import BaseDialog
from decodescope.app.widgets.flow_layout import FlowRow
from decodescope.app.widgets.labels import WrappedLabel
from decodescope.app.widgets.plain_text import PlainLabel, tooltip, window_title
from decodescope.app.widgets.text_documents import ExactTextEdit
from decodescope.core import cache_title, explain_call_facts, seed_text, strategy_title, words
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    from decodescope.core import glossary
    from decodescope.core.events import RunStarted

TableRows = Iterable[tuple[str, str]]
_MAX_VALUE = 60
"""Width of a table's value above which it may be wrapped, in letters of average width."""


class TableDialog(BaseDialog):
    """Two-column table in groups with headings; the text can be selected and copied."""

    def __init__(self, title: str, groups: Iterable[tuple[str, TableRows]], name: str, parent: QWidget | None) -> None:
        super().__init__(parent, name, window_title(title))
        content = QWidget()
        self._grid = QGridLayout(content)
        self._grid.setHorizontalSpacing(28)
        self._grid.setColumnStretch(1, 1)
        for heading, rows in groups:
            self._add_group(heading, rows)
        scroll = set_up(QScrollArea(widgetResizable=True), accessible_name=title)
        scroll.setWidget(content)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.close)
        arrange(QVBoxLayout(self), scroll, buttons, margins=(20, 16, 20, 16))
        scroll.setFocus(Qt.FocusReason.OtherFocusReason)  # arrow keys scroll at once
        size = content.sizeHint()
        self.resize(max(420, size.width() + 70), min(620, size.height() + 110))

    def _add_group(self, heading: str, rows: TableRows) -> None:
        if heading:
            self._put(heading.upper(), 0, "heading")
        for left, right in rows:
            self._put(left, 0, "muted")
            row = self._grid.rowCount() - 1
            label = _label(right, "")
            _wrap_if_wider(label, _MAX_VALUE)
            self._grid.addWidget(label, row, 1)
        self._grid.setRowMinimumHeight(self._grid.rowCount(), 10)

    def _put(self, text: str, column: int, role: str) -> None:
        top = Qt.AlignmentFlag.AlignTop
        self._grid.addWidget(_label(text, role), self._grid.rowCount(), column, top)


def shortcuts_dialog(parent: QWidget | None) -> TableDialog:
    """Dialog with all keyboard shortcuts, grouped."""
    names = dict.fromkeys(shortcut.group for shortcut in SHORTCUTS)
    groups = ((tr(name), [(s.label, tr(s.title)) for s in SHORTCUTS if s.group == name and s.keys]) for name in names)
    return TableDialog(tr("Keyboard shortcuts"), groups, "shortcutsDialog", parent)


def used_settings_dialog(run: Run, changes: Sequence[SettingChange], parent: QWidget | None) -> TableDialog:
    """Dialog with the settings of the last run as the core resolved them, and what has changed since."""
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
    """Rows for a run on a local model."""
    return [
        (tr("Model"), started.model),
        (tr("Strategy"), strategy_title(started)),
        (tr("Cache"), cache_title(started)),
        (tr("Device"), f"{started.device}, {started.dtype}"),
        (tr("Seed"), seed_text(started)),
        (tr("Prompt"), words.count(len(started.prompt), "token")),
        *((tr("Captured call"), sentence) for sentence in explain_call_facts(started.call_facts)),
    ]


def _remote_rows(run: Run, started: RunStarted) -> list[tuple[str, str]]:
    """Rows for a run on a remote engine; the prompt's length is shown if the engine counted it."""
    read = run.finished.metrics.prompt_tokens if run.finished is not None else 0
    rows = [
        (tr("Model"), started.model),
        (tr("Strategy"), strategy_title(started)),
        (tr("Engine"), f"{started.engine}, {started.device}"),
        (tr("Seed"), str(started.seed)),
    ]
    return [*rows, (tr("Prompt"), words.count(read, "token"))] if read else rows


def about_dialog(version: str, native_code: str, parent: QWidget | None) -> TableDialog:
    """Name, purpose, version and licence of the program, and the licences of the libraries that it uses. `native_code`:
    a sentence about the native code that this computer uses.
    """
    privacy = tr(
        "Models run on this computer. Nothing is sent anywhere unless you download a model or connect to an engine."
    )
    rows = [
        (tr("Purpose"), tr("A playground for text generation: watch how every token is chosen.")),
        (tr("Version"), version),
        (tr("Native code"), native_code),
        (tr("Licence"), tr("MIT. The bundled models are under the same licence.")),
        (tr("Privacy"), privacy),
    ]
    libraries = [(f"{part.name} {part.version}", part.licence) for part in third_party_parts()]
    inside = [(library.title, library.licence) for library in bundled_libraries()]
    groups = [
        ("Decodescope", rows),
        (tr("Libraries and their licences"), libraries),
        (tr("Libraries inside these"), inside),
    ]
    return TableDialog(tr("About Decodescope"), groups, "aboutDialog", parent)


FIRST_STEPS = (
    (mark("Run"), mark("Write a prompt on the left and press Run. The text appears token by token.")),
    (mark("Read"), mark("Click a token. The inspector on the right shows what else the model could have written.")),
    (mark("Change"), mark("Choose another strategy, cache or model at the top, change a setting, and run again.")),
    (mark("Branch"), mark("Pick another word in the inspector to see how the text would have continued.")),
    (mark("Keep"), mark("The history keeps every run. Export… saves images, data and web pages.")),
)
VIEWS = (
    (mark("Tokens"), mark("The text, coloured by the probability of each token.")),
    (mark("Chat"), mark("The conversation, for models that have a chat template.")),
    (mark("Tree"), mark("The beams, drafts or alternatives that were considered, kept and dropped.")),
    (mark("Speculation"), mark("What a draft model proposed, and how much of it was accepted.")),
    (mark("Memory"), mark("How much memory the cache uses, byte by byte.")),
    (mark("Compare"), mark("The same prompt with several strategies or settings, side by side.")),
)
KEYS = ("run", "escape", "open_palette", "run_again", "previous_run", "toggle_history", "choose_tour", "open_shortcuts")
_MAX_NAME = 18
"""Width of a name above which it may be wrapped, in letters of average width."""
LINKED_COMMANDS = ("open_documentation", "choose_tour", "open_glossary", "open_shortcuts", "show_welcome")
"""Commands with a button at the bottom."""


class HelpDialog(BaseDialog):
    """Help window: the control in use (`term` explains it), first steps, views, keys. Emits `commandRequested(name)`
    when one of its buttons is pressed.
    """

    commandRequested = Signal(str)

    def __init__(self, parent: QWidget | None = None, term: glossary.GlossaryTerm | None = None) -> None:
        super().__init__(parent, "helpDialog", tr("Help"))
        content = QWidget()
        self._grid = QGridLayout(content)
        self._grid.setHorizontalSpacing(28)
        self._grid.setColumnStretch(1, 1)
        if term is not None:
            self._add_group(tr("The control in use"), ((term.title, term.sentence),))
        self._add_group(tr("First steps"), ((tr(name), tr(text)) for name, text in FIRST_STEPS))
        self._add_group(tr("The views"), ((tr(name), tr(text)) for name, text in VIEWS))
        labels = {shortcut.action: (shortcut.label, tr(shortcut.title)) for shortcut in SHORTCUTS}
        self._add_group(tr("Important keys"), (labels[name] for name in KEYS))
        self._grid.setRowStretch(self._grid.rowCount(), 1)
        scroll = set_up(QScrollArea(widgetResizable=True), accessible_name=tr("Help"))
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setWidget(content)
        commands, buttons = self._buttons()
        foot = arrange(QHBoxLayout(), (commands, 1), (buttons, 0, Qt.AlignmentFlag.AlignBottom), spacing=8)
        arrange(QVBoxLayout(self), (scroll, 1), foot, margins=(20, 16, 20, 16), spacing=12)
        metrics = self.fontMetrics()
        self.resize(max(640, 76 * metrics.averageCharWidth()), min(680, 40 * metrics.height()))

    def _add_group(self, heading: str, rows: Iterable[tuple[str, str]]) -> None:
        row = self._grid.rowCount()
        self._grid.addWidget(_label(heading.upper(), "heading"), row, 0, 1, 2)
        for name, text in rows:
            row += 1
            title = _label(name, "muted")
            _wrap_if_wider(title, _MAX_NAME)
            self._grid.addWidget(title, row, 0, Qt.AlignmentFlag.AlignTop)
            label = _label(text, "")
            label.setWordWrap(True)
            self._grid.addWidget(label, row, 1)
        self._grid.setRowMinimumHeight(row + 1, 10)

    def _buttons(self) -> tuple[FlowRow, QDialogButtonBox]:
        """Return the buttons of commands, in several lines where the type is large, and Close."""
        commands, buttons = FlowRow(spacing=8), QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        titles = {command.name: command for command in COMMANDS}
        for name in LINKED_COMMANDS:
            button = set_up(QPushButton(tr(titles[name].short_title)), name=f"help.{name}")
            button.setAutoDefault(False)
            if key := key_of(name):
                button.setToolTip(tooltip(key))
            button.clicked.connect(lambda _checked=False, name=name: self._run_command(name))
            commands.flow.addWidget(button)
        buttons.rejected.connect(self.close)
        return commands, buttons

    def _run_command(self, name: str) -> None:
        """Close first, so that the window opened by the command gets the focus."""
        self.close()
        self.commandRequested.emit(name)


def _label(text: str, role: str) -> PlainLabel:
    label = set_up(PlainLabel(text), role=role)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return label


def _wrap_if_wider(label: PlainLabel, letters: int) -> None:
    """Wrap a long text; Chinese characters are twice as wide as letters."""
    metrics = label.fontMetrics()
    label.setWordWrap(metrics.horizontalAdvance(label.text()) > letters * metrics.averageCharWidth())


TITLES = {"transformers": mark("For transformers"), "core": mark("For Decodescope")}
_COLUMNS, _LINES = 92, 24
"""Visible size, in characters."""


class CodeDialog(BaseDialog):
    """Show one script at a time from `scripts`, keyed by flavour; `reason` explains why only one exists."""

    def __init__(self, scripts: Mapping[str, str], reason: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("codeDialog")
        self.setWindowTitle(tr("Copy as code"))
        self._scripts = dict(scripts)
        self.flavour = SegmentedControl([(name, tr(TITLES[name])) for name in scripts], tr("Code"), self)
        self.flavour.setVisible(len(scripts) > 1)
        self.flavour.chosen.connect(self.show_flavour)
        self.reason = set_up(WrappedLabel(reason), role="muted")
        self.reason.setVisible(bool(reason))
        self.code = set_up(ExactTextEdit(self), name="code", role="code", accessible_name=tr("Code of the run"))
        self.code.setReadOnly(True)
        self.code.setTabStopDistance(tab_distance(self.code.font()))
        self.code.setLineWrapMode(ExactTextEdit.LineWrapMode.NoWrap)
        self._lay_out()
        self._resize_to_script()
        self.show_flavour(self.flavour.value)

    def _lay_out(self) -> None:
        self.buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        self.copy = self.buttons.addButton(tr("Copy"), QDialogButtonBox.ButtonRole.ActionRole)
        self.copy.setDefault(True)
        self.copy.clicked.connect(self._on_copy)
        self.buttons.rejected.connect(self.close)
        column = arrange(QVBoxLayout(self), margins=(20, 16, 20, 16), spacing=12)
        arrange(column, (self.flavour, 0, Qt.AlignmentFlag.AlignLeft), self.reason, (self.code, 1), self.buttons)

    def _resize_to_script(self) -> None:
        """Resize to fit a typical script."""
        self.code.ensurePolished()
        metrics = self.code.fontMetrics()
        self.resize(metrics.horizontalAdvance("x") * _COLUMNS + 80, metrics.lineSpacing() * _LINES + 150)

    @Slot(str)
    def show_flavour(self, name: str) -> None:
        """Show the script of that flavour."""
        self.code.setPlainText(self._scripts[name])

    @Slot()
    def _on_copy(self) -> None:
        """Copy the code and confirm it on the button."""
        QGuiApplication.clipboard().setText(self.code.toPlainText())
        self.copy.setText(tr("Copied"))
