"""Where models run, and how much of their work is listed."""

from __future__ import annotations

from PySide6.QtCore import Slot

from app.panels.settings.fields import (
    SettingsForm,
    make_check_box,
    make_combo_box,
    make_remark,
    make_spin_box,
    selected_value,
)
from app.state.decode_backend import DecodeBackend
from app.storage.settings import ComputeSection
from app.widgets.plain_text import tooltip
from resources.language import join_sentences, mark, tr

DEVICES = (("auto", mark("Automatic")), ("cpu", mark("CPU")), ("cuda", mark("CUDA GPU")), ("mps", mark("Apple GPU")))
DTYPES = (("auto", mark("Automatic")), ("float32", "float32"), ("bfloat16", "bfloat16"), ("float16", "float16"))
_TRACING_HELP = mark(
    "Tokens listed for each step. 0 switches the listing off, which saves a few per cent of the speed."
)
_NATIVE_CODE_HELP = mark("Built once by this machine's compiler, in the background. The text stays the same.")


class ComputeSettings(SettingsForm):
    """Device, number type, threads, who takes the steps, and the alternatives that are kept of each."""

    def __init__(self, settings: ComputeSection) -> None:
        super().__init__()
        self._settings = settings
        self.device = make_combo_box("deviceChoice", tr("Device"), DEVICES, settings.device)
        self.device.currentIndexChanged.connect(self._on_device)
        self.dtype = make_combo_box("dtypeChoice", tr("Number type"), DTYPES, settings.dtype)
        self.dtype.currentIndexChanged.connect(self._on_dtype)
        self.threads = make_spin_box("threadsChoice", tr("CPU threads"), settings.threads)
        self.threads.setSpecialValueText(tr("automatic"))
        self.threads.valueChanged.connect(self._on_threads)
        self.top_n = make_spin_box("topChoice", tr("Alternatives listed"), settings.top_n, maximum=100)
        self.top_n.setSpecialValueText(tr("none"))
        self.top_n.setToolTip(tr(_TRACING_HELP))
        self.top_n.valueChanged.connect(self._on_top_n)
        self.add(tr("Device"), self.device)
        self.add(tr("Number type"), self.dtype)
        self.add(tr("CPU threads"), self.threads)
        self.add(tr("Alternatives"), self.top_n)
        self.rows.addRow("", make_remark(tr(_TRACING_HELP)))
        self.native_code = make_check_box(
            "quickChoice", tr("Take steps in machine code for this processor"), settings.quick_steps
        )
        self.native_code.toggled.connect(self._on_native_code)
        self.backend_label = make_remark(tr(_NATIVE_CODE_HELP))
        self.backend_label.setObjectName("quickStanding")
        self.rows.addRow(self.native_code)
        self.rows.addRow("", self.backend_label)

    def show_backend(self, backend: DecodeBackend | None) -> None:
        """What is so now; where the compiler failed, its words are in the tooltip."""
        self.backend_label.setText(
            join_sentences(tr(_NATIVE_CODE_HELP), backend.sentence if backend is not None else "")
        )
        self.backend_label.setToolTip(tooltip(backend.details if backend is not None else ""))

    @Slot()
    def _on_device(self) -> None:
        self._settings.device = selected_value(self.device)
        self.changed.emit("compute")

    @Slot()
    def _on_dtype(self) -> None:
        self._settings.dtype = selected_value(self.dtype)
        self.changed.emit("compute")

    @Slot(int)
    def _on_threads(self, threads: int) -> None:
        self._settings.threads = threads
        self.changed.emit("compute")

    @Slot(bool)
    def _on_native_code(self, on: bool) -> None:
        self._settings.quick_steps = on
        self.changed.emit("steps")

    @Slot(int)
    def _on_top_n(self, count: int) -> None:
        self._settings.top_n = count
        self.changed.emit("tracing")
