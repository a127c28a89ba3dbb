"""The settings window: looks, where models run, what single models are allowed."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDialogButtonBox,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QListWidget,
    QPushButton,
    QScrollArea,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from app.panels.appearance_menu import language_titles, scheme_titles
from app.panels.stage.settings import StageSettings
from app.storage.settings import LARGEST_HISTORY, LARGEST_REUSE, LARGEST_SCALE, SMALLEST_SCALE, Settings
from app.widgets.dialog import ReadDialog
from app.widgets.wrapped_label import WrappedLabel
from resources.depth import DEPTHS
from resources.language import mark, tr

DEVICES = (("auto", mark("Automatic")), ("cpu", mark("CPU")), ("cuda", mark("CUDA GPU")), ("mps", mark("Apple GPU")))
DTYPES = (("auto", mark("Automatic")), ("float32", "float32"), ("bfloat16", "bfloat16"), ("float16", "float16"))
DEPTH_TITLES = (mark("Plain"), mark("Usual"), mark("Exact"))
FIELD_INSET = 7
WIDTH = 54
"""Digits of its own type side by side."""
LEFT_FREE, LEAST_HEIGHT = 160, 120
"""Pixels of the screen's height for the dialog's frame and foot; and what its settings take at least."""
_TRACING = mark("Tokens listed for each step. 0 switches the listing off, which saves a few per cent of the speed.")
_WORDS = mark("How explanations are worded: without a technical word, in the field's words, or with every figure.")
_ALLOWED = {"allow_pickle": mark("pickled weights"), "allow_remote_code": mark("code of its own")}


class _Form(QWidget):
    """Names and editors, a row each."""

    def __init__(self, *rows: tuple[str, QWidget]) -> None:
        super().__init__()
        self.rows = QFormLayout(self)
        self.rows.setContentsMargins(0, 0, 0, 0)
        self.rows.setHorizontalSpacing(18)
        for label, part in rows:
            part.setMinimumWidth(180)
            self.rows.addRow(label, part)


class _Scrolled(QScrollArea):
    """As large as what is in it, where the screen has room for that."""

    def __init__(self) -> None:
        super().__init__(widgetResizable=True)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)

    def sizeHint(self) -> QSize:
        content = self.widget()
        if content is None:
            return super().sizeHint()
        room = self.screen().availableSize().height() - LEFT_FREE
        width = max(content.minimumSizeHint().width(), round(WIDTH * self.fontMetrics().horizontalAdvance("0")))
        height = max(content.heightForWidth(width), content.minimumSizeHint().height())
        bar = self.verticalScrollBar().sizeHint().width() if height > room else 0
        return QSize(width + bar, min(height, room))

    def minimumSizeHint(self) -> QSize:
        content = self.widget()
        return QSize(content.minimumSizeHint().width() if content is not None else 0, LEAST_HEIGHT)


class SettingsDialog(ReadDialog):
    """Changes apply at once; `changed` names the section that did."""

    changed = Signal(str)
    forgetAllWanted = Signal()
    languageChosen = Signal(str)

    def __init__(self, settings: Settings, folder: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("settingsDialog")
        self.setWindowTitle(tr("Settings"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._settings = settings
        self._scroll = _Scrolled()
        content = QWidget()
        column = QVBoxLayout(content)
        column.setContentsMargins(20, 18, 20, 8)
        column.setSpacing(8)
        for title, part in (
            (tr("APPEARANCE"), self._appearance()),
            (tr("PRESENTING"), self._stage()),
            (tr("WHERE MODELS RUN"), self._compute()),
            (tr("MEMORY"), self._memory()),
            (tr("HISTORY"), self._history()),
            (tr("WHAT SINGLE MODELS MAY DO"), self._permissions()),
        ):
            heading = QLabel(title)
            heading.setProperty("role", "heading")
            column.addWidget(heading)
            column.addWidget(part)
            column.addSpacing(8)
        column.addWidget(_muted(tr("Kept in {folder}").format(folder=folder)))
        self._scroll.setWidget(content)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.close)
        buttons.setContentsMargins(20, 8, 20, 16)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(0)
        whole.addWidget(self._scroll, 1)
        whole.addWidget(buttons)
        self._align()

    def showEvent(self, event: QShowEvent) -> None:
        """As high as there is room for: Qt alone gives a window two thirds of the screen."""
        self.resize(self.sizeHint())
        super().showEvent(event)

    @property
    def scrolled(self) -> int:
        """How far down the settings are scrolled, in pixels."""
        return self._scroll.verticalScrollBar().value()

    def scroll_to(self, place: int) -> None:
        """Show the settings that stand so far down."""
        self._scroll.verticalScrollBar().setValue(place)

    def _align(self) -> None:
        """Let the fields of all sections begin at one edge."""
        forms = self.findChildren(QFormLayout)
        items = [form.itemAt(row, QFormLayout.ItemRole.LabelRole) for form in forms for row in range(form.rowCount())]
        labels = [label for item in items if item is not None and (label := item.widget()) is not None]
        for label in labels:
            label.ensurePolished()
        widest = max(label.sizeHint().width() for label in labels)
        for label in labels:
            label.setMinimumWidth(widest)

    def _appearance(self) -> QWidget:
        look = self._settings.appearance
        theme = _combo("themeChoice", tr("Theme"), scheme_titles(), look.theme)
        theme.currentIndexChanged.connect(self._on_theme)
        scale = _spin("scaleChoice", tr("Text size"), round(look.font_scale * 100))
        scale.setRange(round(SMALLEST_SCALE * 100), round(LARGEST_SCALE * 100))
        scale.setValue(round(look.font_scale * 100))
        scale.setSingleStep(10)
        scale.setSuffix(" %")
        scale.valueChanged.connect(self._on_scale)
        words = _combo("depthChoice", tr("Words"), tuple(zip(DEPTHS, DEPTH_TITLES, strict=True)), look.depth)
        words.setToolTip(tr(_WORDS))
        words.currentIndexChanged.connect(self._on_depth)
        speech = _combo("languageChoice", tr("Language"), language_titles(), look.language)
        speech.activated.connect(self._on_language)
        return _Form((tr("Language"), speech), (tr("Theme"), theme), (tr("Text size"), scale), (tr("Words"), words))

    def _stage(self) -> QWidget:
        part = StageSettings(self._settings.appearance)
        part.changed.connect(lambda: self.changed.emit("stage"))
        return part

    def _compute(self) -> QWidget:
        compute = self._settings.compute
        device = _combo("deviceChoice", tr("Device"), DEVICES, compute.device)
        device.currentIndexChanged.connect(self._on_device)
        dtype = _combo("dtypeChoice", tr("Number type"), DTYPES, compute.dtype)
        dtype.currentIndexChanged.connect(self._on_dtype)
        threads = _spin("threadsChoice", tr("CPU threads"), compute.threads)
        threads.setSpecialValueText(tr("automatic"))
        threads.valueChanged.connect(self._on_threads)
        top_n = _spin("topChoice", tr("Alternatives listed"), compute.top_n)
        top_n.setRange(0, 100)
        top_n.setValue(compute.top_n)
        top_n.setSpecialValueText(tr("none"))
        top_n.setToolTip(tr(_TRACING))
        top_n.valueChanged.connect(self._on_top_n)
        form = _Form(
            (tr("Device"), device),
            (tr("Number type"), dtype),
            (tr("CPU threads"), threads),
            (tr("Alternatives"), top_n),
        )
        form.rows.addRow("", _muted(tr(_TRACING)))
        return form

    def _memory(self) -> QWidget:
        compute = self._settings.compute
        self.reuse = _check("reuseChoice", tr("Reuse what earlier runs have read"), compute.reuse)
        self.reuse.setToolTip(
            tr("A run whose prompt begins like an earlier text starts from the cache that has read it.")
        )
        self.reuse.toggled.connect(self._on_reuse)
        self.budget = _spin("reuseBudget", tr("Memory for what earlier runs have read"), compute.reuse_mib)
        self.budget.setRange(1, LARGEST_REUSE)
        self.budget.setValue(compute.reuse_mib)
        self.budget.setSuffix(" MiB")
        self.budget.setEnabled(compute.reuse)
        self.budget.valueChanged.connect(self._on_budget)
        title = tr("When memory ends, go on with a cheaper cache")
        fallback = _check("fallbackChoice", title, compute.memory_fallback)
        fallback.setToolTip(tr("Only with one that writes the same text; the window says so when it happens."))
        fallback.toggled.connect(self._on_fallback)
        form = _Form((tr("At most"), self.budget))
        form.rows.insertRow(0, self.reuse)
        form.rows.addRow(fallback)
        return form

    def _history(self) -> QWidget:
        kept = self._settings.history
        keep = _check("historyChoice", tr("Keep every run, on this machine alone"), kept.keep)
        keep.toggled.connect(self._on_keep)
        self.room = _spin("historyBudget", tr("Disk for kept runs"), kept.budget_mib)
        self.room.setRange(1, LARGEST_HISTORY)
        self.room.setValue(kept.budget_mib)
        self.room.setSuffix(" MiB")
        self.room.setToolTip(tr("When it is spent, the oldest runs that are not pinned go."))
        self.room.setEnabled(kept.keep)
        self.room.valueChanged.connect(self._on_room)
        forget = QPushButton(tr("Forget all…"))
        forget.setObjectName("forgetAllButton")
        forget.clicked.connect(self.forgetAllWanted)
        form = _Form((tr("At most"), self.room))
        form.rows.insertRow(0, keep)
        line = QHBoxLayout()
        line.addWidget(forget)
        line.addStretch(1)
        form.rows.addRow("", line)
        return form

    def _permissions(self) -> QWidget:
        box = QWidget()
        column = QVBoxLayout(box)
        column.setContentsMargins(0, 0, 0, 0)
        self.allowed = QListWidget()
        self.allowed.setObjectName("allowedList")
        self.allowed.setAccessibleName(tr("Permissions of single models"))
        self.allowed.setFixedHeight(84)
        self.revoke = QPushButton(tr("Take the permission back"))
        self.revoke.setObjectName("revokeButton")
        self.revoke.clicked.connect(self._on_revoke)
        self.none_allowed = _muted(tr("No model may load pickled weights or run code of its own."))
        column.addWidget(self.none_allowed)
        column.addWidget(self.allowed)
        column.addWidget(self.revoke, 0, Qt.AlignmentFlag.AlignLeft)
        self._fill_allowed()
        return box

    def _fill_allowed(self) -> None:
        self.allowed.clear()
        for key, words in _ALLOWED.items():
            for model in getattr(self._settings.models, key):
                self.allowed.addItem(f"{model}: {tr(words)}")
                self.allowed.item(self.allowed.count() - 1).setData(Qt.ItemDataRole.UserRole, (key, model))

        self.none_allowed.setVisible(not self.allowed.count())
        for part in (self.allowed, self.revoke):
            part.setVisible(bool(self.allowed.count()))

    @Slot()
    def _on_revoke(self) -> None:
        item = self.allowed.currentItem()
        if item is not None:
            key, model = item.data(Qt.ItemDataRole.UserRole)
            getattr(self._settings.models, key).remove(model)
            self._fill_allowed()
            self.changed.emit("models")

    def _chosen(self) -> str:
        """What the list that was touched now says."""
        combo = self.sender()
        assert isinstance(combo, QComboBox)
        return str(combo.currentData())

    @Slot()
    def _on_theme(self) -> None:
        self._settings.appearance.theme = self._chosen()
        self.changed.emit("appearance")

    @Slot()
    def _on_depth(self) -> None:
        self._settings.appearance.depth = self._chosen()
        self.changed.emit("appearance")

    @Slot()
    def _on_language(self) -> None:
        self.languageChosen.emit(self._chosen())

    @Slot(int)
    def _on_scale(self, percent: int) -> None:
        self._settings.appearance.font_scale = percent / 100
        self.changed.emit("appearance")

    @Slot()
    def _on_device(self) -> None:
        self._settings.compute.device = self._chosen()
        self.changed.emit("compute")

    @Slot()
    def _on_dtype(self) -> None:
        self._settings.compute.dtype = self._chosen()
        self.changed.emit("compute")

    @Slot(int)
    def _on_threads(self, threads: int) -> None:
        self._settings.compute.threads = threads
        self.changed.emit("compute")

    @Slot(int)
    def _on_top_n(self, count: int) -> None:
        self._settings.compute.top_n = count
        self.changed.emit("tracing")

    @Slot(bool)
    def _on_reuse(self, on: bool) -> None:
        self._settings.compute.reuse = on
        self.budget.setEnabled(on)
        self.changed.emit("reuse")

    @Slot(int)
    def _on_budget(self, mib: int) -> None:
        self._settings.compute.reuse_mib = mib
        self.changed.emit("reuse")

    @Slot(bool)
    def _on_keep(self, on: bool) -> None:
        self._settings.history.keep = on
        self.room.setEnabled(on)
        self.changed.emit("history")

    @Slot(int)
    def _on_room(self, mib: int) -> None:
        self._settings.history.budget_mib = mib
        self.changed.emit("history")

    @Slot(bool)
    def _on_fallback(self, on: bool) -> None:
        self._settings.compute.memory_fallback = on
        self.changed.emit("reuse")


def _check(name: str, title: str, on: bool) -> QCheckBox:
    box = QCheckBox(title)
    box.setObjectName(name)
    box.setChecked(on)
    return box


def _combo(name: str, label: str, choices: tuple[tuple[str, str], ...], chosen: str) -> QComboBox:
    combo = QComboBox()
    combo.setObjectName(name)
    combo.setAccessibleName(label)
    for value, title in choices:
        combo.addItem(tr(title), value)
    if combo.findData(chosen) < 0:
        combo.addItem(chosen, chosen)
    combo.setCurrentIndex(combo.findData(chosen))
    return combo


def _spin(name: str, label: str, value: int) -> QSpinBox:
    spin = QSpinBox()
    spin.setObjectName(name)
    spin.setAccessibleName(label)
    spin.setRange(0, 1024)
    spin.setValue(value)
    spin.lineEdit().setTextMargins(FIELD_INSET, 0, 0, 0)  # style sheets do not move a spin box's text
    return spin


def _muted(text: str) -> QLabel:
    label = WrappedLabel(text)
    label.setProperty("role", "muted")
    return label
