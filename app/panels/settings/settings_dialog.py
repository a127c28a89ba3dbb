"""Settings for appearance and for the level of detail of explanations."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtWidgets import (
    QCheckBox,
    QDialogButtonBox,
    QFormLayout,
    QHBoxLayout,
    QListWidget,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from decodescope.app.panels.commands import language_titles, scheme_titles
from decodescope.app.panels.settings.form import (
    CheckBoxRemark,
    SettingsForm,
    make_check_box,
    make_combo_box,
    make_remark,
    make_spin_box,
    selected_value,
)
from decodescope.app.state.worker_messages import DecodeBackend
from decodescope.app.storage.settings import (
    MAX_HISTORY_MIB,
    MAX_REUSE_MIB,
    MAX_SCALE,
    MIN_SCALE,
    AppearanceSection,
    ChatSection,
    ComputeSection,
    HistorySection,
    ModelsSection,
    Settings,
    UpdatesSection,
)
from decodescope.app.widgets.animation.motion import prefers_reduced_motion
from decodescope.app.widgets.building import STRETCH, Gap, arrange, set_up
from decodescope.app.widgets.dialog import ScrolledDialog
from decodescope.app.widgets.inputs import LazyComboBox
from decodescope.app.widgets.plain_text import PlainLabel, caption, tooltip
from decodescope.app.widgets.sound_player import sound_unsupported_reason
from decodescope.core import words
from decodescope.resources.depth import DEPTHS
from decodescope.resources.language import join_sentences, mark, tr

DEPTH_TITLES = (mark("Plain"), mark("Standard"), mark("Exact"))
_DEPTH_HELP = mark("Wording of explanations: without technical terms, with standard terms, or with all numbers.")


class AppearanceSettings(SettingsForm):
    """Language, theme, text size and level of detail."""

    languageChosen = Signal(str)

    def __init__(self, settings: AppearanceSection) -> None:
        super().__init__(settings)
        self.language = make_combo_box("languageChoice", tr("Language"), language_titles(), settings.language)
        self.language.activated.connect(self._on_language)
        self.theme = make_combo_box("themeChoice", tr("Theme"), scheme_titles(), settings.theme)
        self.bind(self.theme, "theme", "appearance")
        percent, min_percent, max_percent = (
            round(scale * 100) for scale in (settings.font_scale, MIN_SCALE, MAX_SCALE)
        )
        self.scale = make_spin_box("scaleChoice", tr("Text size"), percent, min_percent, max_percent)
        self.scale.setSingleStep(10)
        self.scale.setSuffix(words.percent_text(""))
        self.scale.valueChanged.connect(self._on_scale)
        self.wording = make_combo_box(
            "depthChoice", tr("Wording"), tuple(zip(DEPTHS, DEPTH_TITLES, strict=True)), settings.depth
        )
        self.wording.setToolTip(tr(_DEPTH_HELP))
        self.bind(self.wording, "depth", "appearance")
        self.add(tr("Language"), self.language)
        self.add(tr("Theme"), self.theme)
        self.add(tr("Text size"), self.scale)
        self.add(tr("Wording"), self.wording)

    @Slot()
    def _on_language(self) -> None:
        self.languageChosen.emit(selected_value(self.language))

    @Slot(int)
    def _on_scale(self, percent: int) -> None:
        self._settings.font_scale = percent / 100
        self.changed.emit("appearance")


DEVICES = (
    ("auto", mark("Automatic")), ("cpu", mark("CPU")), ("cuda", mark("CUDA GPU")), ("spread", mark("All CUDA GPUs")),
    ("mps", mark("Apple GPU")),
)  # fmt: skip
DTYPES = (("auto", mark("Automatic")), ("float32", "float32"), ("bfloat16", "bfloat16"), ("float16", "float16"))
_TRACING_HELP = mark(
    "Number of alternatives recorded per step. 0 turns recording off and makes runs a few per cent faster."
)
_NATIVE_CODE_HELP = mark("Compiled once on this machine, in the background. The generated text stays the same.")


class ComputeSettings(SettingsForm):
    """Device, data type, threads, decode backend, and number of recorded alternatives."""

    def __init__(self, settings: ComputeSection) -> None:
        super().__init__(settings)
        self.device = make_combo_box("deviceChoice", tr("Device"), DEVICES, settings.device)
        self.bind(self.device, "device", "compute")
        self.dtype = make_combo_box("dtypeChoice", tr("Data type"), DTYPES, settings.dtype)
        self.bind(self.dtype, "dtype", "compute")
        self.threads = make_spin_box("threadsChoice", tr("CPU threads"), settings.threads)
        self.threads.setSpecialValueText(tr("Automatic"))
        self.bind(self.threads, "threads", "compute")
        self.top_n = make_spin_box("topChoice", tr("Recorded alternatives"), settings.top_n, maximum=100)
        self.top_n.setSpecialValueText(tr("none"))
        self.top_n.setToolTip(tr(_TRACING_HELP))
        self.bind(self.top_n, "top_n", "tracing")
        self.add(tr("Device"), self.device)
        self.add(tr("Data type"), self.dtype)
        self.add(tr("CPU threads"), self.threads)
        self.add(tr("Alternatives"), self.top_n)
        self.rows.addRow("", make_remark(tr(_TRACING_HELP)))
        self.native_code = make_check_box("quickChoice", tr("Use native code (faster)"), settings.quick_steps)
        self.bind(self.native_code, "quick_steps", "steps")
        remark = CheckBoxRemark(tr(_NATIVE_CODE_HELP))
        self.backend_label = set_up(remark.label, name="quickStanding")
        self.rows.addRow(self.native_code)
        self.rows.addRow(remark)

    def show_backend(self, backend: DecodeBackend | None) -> None:
        """Show the current decode backend; compiler errors are shown in the tooltip."""
        self.backend_label.setText(
            join_sentences(tr(_NATIVE_CODE_HELP), backend.sentence if backend is not None else "")
        )
        self.backend_label.setToolTip(tooltip(backend.details if backend is not None else ""))


class ChatSettings(SettingsForm):
    """Choice of the key that sends a message."""

    def __init__(self, settings: ChatSection) -> None:
        super().__init__(settings)
        choices = (
            (True, tr("Sends; Shift+Enter starts a new line")),
            (False, tr("Starts a new line; Shift+Enter sends")),
        )
        self.enter = set_up(LazyComboBox(), name="enterChoice", accessible_name=tr("Enter key in a chat"))
        for value, title in choices:
            self.enter.addItem(title, value)
        self.enter.setCurrentIndex(0 if settings.enter_sends else 1)
        self.enter.activated.connect(self._on_enter)
        self.add(tr("Enter key"), self.enter)

    @Slot()
    def _on_enter(self) -> None:
        self._settings.enter_sends = bool(self.enter.currentData())
        self.changed.emit("chat")


class HistorySettings(SettingsForm):
    """History on or off, its budget, and a button to delete it."""

    forgetAllRequested = Signal()

    def __init__(self, settings: HistorySection) -> None:
        super().__init__(settings)
        self.keep_box = make_check_box("historyChoice", tr("Keep every run, on this machine only"), settings.keep)
        self.bind(self.keep_box, "keep", "history")
        self.budget = make_spin_box(
            "historyBudget", tr("Disk space for saved runs"), settings.budget_mib, 1, MAX_HISTORY_MIB
        )
        self.budget.setSuffix(" MiB")
        self.budget.setToolTip(tr("When the limit is reached, the oldest unpinned runs are deleted."))
        self.budget.setEnabled(settings.keep)
        self.keep_box.toggled.connect(self.budget.setEnabled)
        self.bind(self.budget, "budget_mib", "history")
        self.rows.addRow(self.keep_box)
        self.add(tr("At most"), self.budget)
        self.rows.addRow("", self._delete_all_row())

    def _delete_all_row(self) -> QHBoxLayout:
        forget = set_up(QPushButton(tr("Delete all…")), name="forgetAllButton", clicked=self.forgetAllRequested)
        return arrange(QHBoxLayout(), forget, STRETCH)


class MemorySettings(SettingsForm):
    """Prefix reuse, its memory budget, and the fallback cache."""

    def __init__(self, settings: ComputeSection) -> None:
        super().__init__(settings)
        self.reuse = make_check_box("reuseChoice", tr("Reuse cached prefixes of earlier runs"), settings.reuse)
        self.reuse.setToolTip(
            tr("If a prompt begins like an earlier text, the run starts from the cache of that text.")
        )
        self.bind(self.reuse, "reuse", "reuse")
        title = tr("Memory for cached prefixes")
        self.budget = make_spin_box("reuseBudget", title, settings.reuse_mib, 1, MAX_REUSE_MIB)
        self.budget.setSuffix(" MiB")
        self.budget.setEnabled(settings.reuse)
        self.reuse.toggled.connect(self.budget.setEnabled)
        self.bind(self.budget, "reuse_mib", "reuse")
        title = tr("If memory runs out, switch to a smaller cache")
        self.fallback = make_check_box("fallbackChoice", title, settings.memory_fallback)
        self.fallback.setToolTip(
            tr("Only a cache that produces the same text is used; a message appears when it happens.")
        )
        self.bind(self.fallback, "memory_fallback", "reuse")
        self.rows.addRow(self.reuse)
        self.add(tr("At most"), self.budget)
        self.rows.addRow(self.fallback)


class UpdateSettings(SettingsForm):
    """The setting that checks for new versions. The first time, a question says what that sends."""

    def __init__(self, settings: UpdatesSection, address: str, unavailable_reason: str) -> None:
        """`address` is the one that a check contacts; `unavailable_reason` says why there is none, or is empty."""
        super().__init__(settings)
        self._address = address
        title = tr("Check for new versions once a week")
        self.check = make_check_box("updatesChoice", title, settings.check and not unavailable_reason)
        self.check.setEnabled(not unavailable_reason)
        self.check.setAccessibleDescription(unavailable_reason)
        self.check.toggled.connect(self._on_check)
        self.rows.addRow(self.check)
        remark = tr("Off, nothing is contacted. On, it is {address} only.").format(address=address)
        self.rows.addRow(CheckBoxRemark(unavailable_reason or remark))

    @Slot(bool)
    def _on_check(self, on: bool) -> None:
        if on and not self._settings.agreed:
            self._show_check(False)
            self._ask()
        else:
            self._settings.check = on
            self.changed.emit("updates")

    def _ask(self) -> None:
        from decodescope.app.widgets.confirmation import (
            ask,  # imports QMessageBox, which the window's start does not need
        )

        ask(
            self.window(), "updatesQuestion", tr("Check for new versions"),
            tr("Contact {address} once a week?").format(address=self._address),
            tr(
                "The server sees this computer's internet address and that Decodescope made the request, nothing else. "
                "Its answer must be signed by the program's makers. Nothing is downloaded or installed."
            ),
            tr("Check for new versions"), self._on_agreed,
        )  # fmt: skip

    @Slot()
    def _on_agreed(self) -> None:
        self._settings.agreed = self._settings.check = True
        self._show_check(True)
        self.changed.emit("updates")

    def _show_check(self, on: bool) -> None:
        with QSignalBlocker(self.check):
            self.check.setChecked(on)


_PERMISSIONS = {"allow_pickle": mark("pickled weights"), "allow_remote_code": mark("custom code")}


class PermissionSettings(QWidget):
    """List of models and their permissions, or a sentence if there are none."""

    changed = Signal(str)

    def __init__(self, settings: ModelsSection) -> None:
        super().__init__()
        self._settings = settings
        column = arrange(QVBoxLayout(self), margins=0)
        self.allowed = set_up(QListWidget(), name="allowedList", accessible_name=tr("Permissions of individual models"))
        self.allowed.setFixedHeight(84)
        self.revoke = set_up(QPushButton(tr("Revoke permission")), name="revokeButton", clicked=self._on_revoke)
        self.none_allowed = make_remark(tr("No model may load pickled weights or run custom code."))
        arrange(column, self.none_allowed, self.allowed, (self.revoke, 0, Qt.AlignmentFlag.AlignLeft))
        self._fill()

    def _fill(self) -> None:
        self.allowed.clear()
        for key, kind in _PERMISSIONS.items():
            for model in getattr(self._settings, key):
                self.allowed.addItem(f"{model}: {tr(kind)}")
                self.allowed.item(self.allowed.count() - 1).setData(Qt.ItemDataRole.UserRole, (key, model))
        self.none_allowed.setVisible(not self.allowed.count())
        for part in (self.allowed, self.revoke):
            part.setVisible(bool(self.allowed.count()))

    @Slot()
    def _on_revoke(self) -> None:
        item = self.allowed.currentItem()
        if item is not None:
            key, model = item.data(Qt.ItemDataRole.UserRole)
            getattr(self._settings, key).remove(model)
            self._fill()
            self.changed.emit("models")


class StageSettings(QWidget):
    """Two check boxes; an unavailable one shows why. Emits `changed` when either changes."""

    changed = Signal()

    def __init__(self, settings: AppearanceSection) -> None:
        super().__init__()
        self._settings = settings
        self._column = arrange(QVBoxLayout(self), margins=0)
        still = tr("Reduced motion is turned on in the system settings.") if prefers_reduced_motion() else ""
        self.animated = self._add("animatedChoice", "animated", tr("Animate choices when presenting"), still)
        self.sounds = self._add(
            "soundsChoice",
            "sounds",
            tr("Play sounds for accepted and rejected drafts and at the end"),
            sound_unsupported_reason(),
        )

    def _add(self, name: str, key: str, title: str, unavailable_reason: str) -> QCheckBox:
        box = set_up(QCheckBox(caption(title)), name=name)
        box.setChecked(getattr(self._settings, key) and not unavailable_reason)
        box.setEnabled(not unavailable_reason)
        box.toggled.connect(partial(self._store, key))
        self._column.addWidget(box)
        if unavailable_reason:
            box.setAccessibleDescription(unavailable_reason)
            self._column.addWidget(CheckBoxRemark(unavailable_reason))
        return box

    def _store(self, key: str, on: bool) -> None:
        setattr(self._settings, key, on)
        self.changed.emit()


class SettingsDialog(ScrolledDialog):
    """Settings window; changes apply at once. Emits `changed` with the name of the changed section."""

    changed = Signal(str)
    forgetAllRequested = Signal()
    languageChosen = Signal(str)

    def __init__(
        self,
        settings: Settings,
        folder: str,
        parent: QWidget | None = None,
        update_address: str = "",
        updates_unavailable_reason: str = "",
    ) -> None:
        super().__init__(parent, "settingsDialog", tr("Settings"))
        self._update_address, self._updates_unavailable_reason = update_address, updates_unavailable_reason
        self._settings = settings
        content = QWidget()
        column = arrange(QVBoxLayout(content), margins=(20, 18, 20, 8), spacing=8)
        for title, part in self._parts():
            heading = set_up(PlainLabel(title), role="heading")
            arrange(column, heading, part, Gap(8))
        column.addWidget(make_remark(tr("Stored in {folder}").format(folder=folder)))
        self.set_content(content, self._footer())
        self._align_fields()

    def _parts(self) -> Iterator[tuple[str, QWidget]]:
        """Yield each section with its heading."""
        settings = self._settings
        look, stage = AppearanceSettings(settings.appearance), StageSettings(settings.appearance)
        chat = ChatSettings(settings.chat)
        history, self.permissions = HistorySettings(settings.history), PermissionSettings(settings.models)
        self.compute, memory = ComputeSettings(settings.compute), MemorySettings(settings.compute)
        self.updates = UpdateSettings(settings.updates, self._update_address, self._updates_unavailable_reason)
        for part in (look, chat, self.compute, memory, history, self.updates, self.permissions):
            part.changed.connect(self.changed)
        stage.changed.connect(lambda: self.changed.emit("stage"))
        look.languageChosen.connect(self.languageChosen)
        history.forgetAllRequested.connect(self.forgetAllRequested)
        yield tr("APPEARANCE"), look
        yield tr("PRESENTING"), stage
        yield tr("CHAT"), chat
        yield tr("COMPUTE"), self.compute
        yield tr("MEMORY"), memory
        yield tr("HISTORY"), history
        yield tr("UPDATES"), self.updates
        yield tr("MODEL PERMISSIONS"), self.permissions

    def _footer(self) -> QWidget:
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.close)
        return buttons

    @Slot(object)
    def show_backend(self, backend: DecodeBackend | None) -> None:
        """Show the decode backend of the loaded model."""
        self.compute.show_backend(backend)

    @property
    def scroll_position(self) -> int:
        """Scroll position in pixels."""
        return self._scroll.verticalScrollBar().value()

    def scroll_to(self, position: int) -> None:
        """Scroll to a position in pixels."""
        self._scroll.verticalScrollBar().setValue(position)

    def _align_fields(self) -> None:
        """Align the fields of all sections."""
        forms = self.findChildren(QFormLayout)
        items = [form.itemAt(row, QFormLayout.ItemRole.LabelRole) for form in forms for row in range(form.rowCount())]
        labels = [label for item in items if item is not None and (label := item.widget()) is not None]
        for label in labels:
            label.ensurePolished()
        widest = max(label.sizeHint().width() for label in labels)
        for label in labels:
            label.setMinimumWidth(widest)
