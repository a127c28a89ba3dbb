"""The list of plug-ins: what each adds, where it comes from, whether it is on, and its error."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import (
    QCheckBox,
    QDialogButtonBox,
    QFrame,
    QHBoxLayout,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from decodescope.app.widgets.building import STRETCH, arrange, set_up, show_text
from decodescope.app.widgets.dialog import BaseDialog
from decodescope.app.widgets.file_dialogs import open_folder_dialog
from decodescope.app.widgets.flow_layout import FlowRow, clear_layout
from decodescope.app.widgets.labels import WrappedLabel
from decodescope.app.widgets.plain_text import caption, tooltip
from decodescope.core.plugins import Plugin
from decodescope.resources.language import mark, tr

SIZE = (680, 560)
"""Initial size in pixels, if the screen is large enough."""
_INTRODUCTION = mark(
    "Your own strategies, processors, caches, drafters and measures. A plug-in is Python code with the rights of this "
    "program: switch on only what you trust. Saving a file that you edit here reloads it; the next run uses it."
)
_CHANGED = mark("Changed outside this program. Look at the file, then switch it on again.")
_NOT_LOADED = mark("Plug-ins are not loaded in this window, because it was opened with a recording or a tour.")


def _needs_attention(plugin: Plugin) -> int:
    """Return the sort key of a plug-in: failed ones first, then changed ones."""
    return {"failed": 0, "changed": 1}.get(plugin.state, 2)


class PluginRow(QFrame):
    """One plug-in. `switched(plugin, is on)`, `editRequested(plugin)` and `removeRequested(plugin)`."""

    switched = Signal(object, bool)
    editRequested = Signal(object)
    removeRequested = Signal(object)

    def __init__(self, plugin: Plugin, parent: QWidget) -> None:
        super().__init__(parent)
        self.plugin = plugin
        self.setProperty("role", "card")
        self.box = QCheckBox(caption(plugin.title), self)
        self.box.setChecked(plugin.state in ("on", "failed"))
        self.box.setEnabled(plugin.path is None or bool(plugin.digest))
        self.box.setAccessibleDescription(plugin.contents or plugin.summary)
        self.box.clicked.connect(self._on_clicked)
        top = arrange(QHBoxLayout(), (self.box, 1))
        if plugin.path is not None:
            self.edit = self._quiet_button(tr("Edit"), tr("Edit {plugin}"))
            self.edit.clicked.connect(self._on_edit)
            top.addWidget(self.edit)
        if plugin.folder is not None:
            self.remove = self._quiet_button(tr("Remove"), tr("Remove {plugin}"))
            self.remove.setToolTip(tooltip(tr("Remove the folder from this list. Its files are not changed.")))
            self.remove.clicked.connect(self._on_remove)
            top.addWidget(self.remove)
        column = arrange(QVBoxLayout(self), top, margins=(14, 10, 14, 10), spacing=4)
        for text, role in (
            (plugin.contents or plugin.summary, ""),
            (plugin.error.cause if plugin.error is not None else "", "danger"),
            (tr(_CHANGED) if plugin.state == "changed" else plugin.notice, "warning"),
            (plugin.source, "muted"),
        ):
            if text:
                self._add_line(column, text, role)
        if plugin.error is not None and plugin.error.details:
            self.setToolTip(tooltip(plugin.error.details))

    def _quiet_button(self, text: str, name: str) -> QPushButton:
        button = set_up(QPushButton(caption(text), self), role="quiet")
        button.setAutoDefault(False)
        button.setAccessibleName(name.format(plugin=self.plugin.title))
        return button

    def _add_line(self, column: QVBoxLayout, text: str, role: str) -> None:
        label = set_up(WrappedLabel(text, self), role=role)
        label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        column.addWidget(label)

    @Slot(bool)
    def _on_clicked(self, is_on: bool) -> None:
        self.switched.emit(self.plugin, is_on)

    @Slot()
    def _on_edit(self) -> None:
        self.editRequested.emit(self.plugin)

    @Slot()
    def _on_remove(self) -> None:
        self.removeRequested.emit(self.plugin)


class PluginDialog(BaseDialog):
    """The list of plug-ins; not modal, deleted on close. Its signals request what its buttons say."""

    switched = Signal(object, bool)
    editRequested = Signal(object)
    removeRequested = Signal(object)
    folderChosen = Signal(str)
    trusted = Signal(str)
    """Path of a `custom_generate` folder whose code the user allows to run."""
    createRequested = Signal(str)
    """Kind of the template: "strategy" or "processor"."""
    folderRequested = Signal()
    loadRequested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, "pluginDialog", tr("Plug-ins"))
        self.rows: list[PluginRow] = []
        self._asked_path = ""
        introduction = WrappedLabel(tr(_INTRODUCTION), self)
        self.message = set_up(WrappedLabel("", self), role="warning")
        self.load = self._button("loadPlugins", tr("Load plug-ins"))
        self.load.clicked.connect(self.loadRequested)
        self.empty = set_up(WrappedLabel("", self), role="muted")
        content = QWidget(self)
        self._list = arrange(QVBoxLayout(), spacing=8)
        arrange(QVBoxLayout(content), self.empty, self._list, STRETCH, margins=0)
        area = set_up(QScrollArea(self), accessible_name=tr("Plug-ins"))
        area.setWidgetResizable(True)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setWidget(content)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        buttons.button(QDialogButtonBox.StandardButton.Close).setAutoDefault(False)
        buttons.rejected.connect(self.close)
        column = arrange(QVBoxLayout(self), margins=(20, 16, 20, 16), spacing=12)
        arrange(column, introduction, self._make_buttons(), self.message, self.load)
        column.setAlignment(self.load, Qt.AlignmentFlag.AlignLeft)
        arrange(column, (area, 1), buttons)
        self.resize(*SIZE)

    def _make_buttons(self) -> FlowRow:
        row = FlowRow(self, 8)
        self.new_strategy = self._button("newStrategy", tr("New strategy…"))
        self.new_processor = self._button("newProcessor", tr("New processor…"))
        self.add_folder = self._button("addGenerateFolder", tr("Add custom_generate…"))
        self.add_folder.setToolTip(
            tooltip(tr("Use a decoding function of transformers: a folder with custom_generate/generate.py."))
        )
        self.open_folder = self._button("openPluginFolder", tr("Open folder"))
        self.new_strategy.clicked.connect(self._on_new_strategy)
        self.new_processor.clicked.connect(self._on_new_processor)
        self.add_folder.clicked.connect(self._on_add_folder)
        self.open_folder.clicked.connect(self.folderRequested)
        arrange(row.flow, self.new_strategy, self.new_processor, self.add_folder, self.open_folder)
        return row

    def _button(self, name: str, text: str) -> QPushButton:
        button = set_up(QPushButton(caption(text), self), name=name)
        button.setAutoDefault(False)
        return button

    def show_plugins(self, plugins: Sequence[Plugin], folder: str, is_loaded: bool) -> None:
        """Show the list; `is_loaded` is False in windows that do not load plug-ins by themselves."""
        focused = next((row.plugin.key for row in self.rows if row.box.hasFocus()), "")
        clear_layout(self._list)
        self.rows = [PluginRow(plugin, self) for plugin in sorted(plugins, key=_needs_attention)]
        for row in self.rows:
            row.switched.connect(self.switched)
            row.editRequested.connect(self.editRequested)
            row.removeRequested.connect(self.removeRequested)
            self._list.addWidget(row)
            row.show()
            if row.plugin.key == focused:
                row.box.setFocus()
        self.empty.setText(
            tr("No plug-ins yet. Create one with a button above, or put a Python file into {folder}.").format(
                folder=folder
            )
        )
        self.empty.setVisible(not plugins)
        waits = not is_loaded and any(plugin.state == "on" for plugin in plugins)
        self.load.setVisible(waits)
        self.show_message(tr(_NOT_LOADED) if waits else "")

    def show_message(self, text: str) -> None:
        """Show a sentence above the list; nothing if empty."""
        show_text(self.message, text)

    @Slot()
    def _on_new_strategy(self) -> None:
        self.createRequested.emit("strategy")

    @Slot()
    def _on_new_processor(self) -> None:
        self.createRequested.emit("processor")

    @Slot()
    def _on_add_folder(self) -> None:
        open_folder_dialog(self, tr("Choose a folder with custom_generate/generate.py"), self.folderChosen.emit)

    def ask_trust(self, path: str) -> None:
        """Ask whether the code of a `custom_generate` folder may run; `trusted` follows if the user allows it."""
        from decodescope.app.widgets.confirmation import (
            ask,  # imports QMessageBox, which the window's start does not need
        )

        cause = tr(
            "{file} includes its own program code ({code}), which would run on this computer with your permissions."
        )
        self._asked_path = path
        ask(
            self, "trustQuestion", tr("Custom code"), cause.format(file=path, code="custom_generate/generate.py"),
            tr("Allow it for this folder only if you trust its source."), tr("Allow for this folder"),
            self._on_allowed,
        )  # fmt: skip

    @Slot()
    def _on_allowed(self) -> None:
        self.trusted.emit(self._asked_path)
