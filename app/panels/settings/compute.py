"""Where models run, and how much of their work is listed."""

from __future__ import annotations

from PySide6.QtCore import Slot

from app.panels.settings.fields import SettingsForm, check, chosen, combo, muted, spin
from app.state.decode_backend import DecodeBackend
from app.storage.settings import Compute
from app.widgets.plain_text import tooltip
from resources.language import mark, sentences, tr

DEVICES = (("auto", mark("Automatic")), ("cpu", mark("CPU")), ("cuda", mark("CUDA GPU")), ("mps", mark("Apple GPU")))
DTYPES = (("auto", mark("Automatic")), ("float32", "float32"), ("bfloat16", "bfloat16"), ("float16", "float16"))
_TRACING = mark("Tokens listed for each step. 0 switches the listing off, which saves a few per cent of the speed.")
_QUICK = mark("Built once by this machine's compiler, in the background. The text stays the same.")


class ComputeSettings(SettingsForm):
    """Device, number type, threads, who takes the steps, and the alternatives that are kept of each."""

    def __init__(self, kept: Compute) -> None:
        super().__init__()
        self._kept = kept
        self.device = combo("deviceChoice", tr("Device"), DEVICES, kept.device)
        self.device.currentIndexChanged.connect(self._on_device)
        self.dtype = combo("dtypeChoice", tr("Number type"), DTYPES, kept.dtype)
        self.dtype.currentIndexChanged.connect(self._on_dtype)
        self.threads = spin("threadsChoice", tr("CPU threads"), kept.threads)
        self.threads.setSpecialValueText(tr("automatic"))
        self.threads.valueChanged.connect(self._on_threads)
        self.top_n = spin("topChoice", tr("Alternatives listed"), kept.top_n, most=100)
        self.top_n.setSpecialValueText(tr("none"))
        self.top_n.setToolTip(tr(_TRACING))
        self.top_n.valueChanged.connect(self._on_top_n)
        self.add(tr("Device"), self.device)
        self.add(tr("Number type"), self.dtype)
        self.add(tr("CPU threads"), self.threads)
        self.add(tr("Alternatives"), self.top_n)
        self.rows.addRow("", muted(tr(_TRACING)))
        self.quick = check("quickChoice", tr("Take steps in machine code for this processor"), kept.quick_steps)
        self.quick.toggled.connect(self._on_quick)
        self.steps = muted(tr(_QUICK))
        self.steps.setObjectName("quickStanding")
        self.rows.addRow(self.quick)
        self.rows.addRow("", self.steps)

    def show_steps(self, steps: DecodeBackend | None) -> None:
        """What is so now; where the compiler failed, its words are in the tooltip."""
        self.steps.setText(sentences(tr(_QUICK), steps.sentence if steps is not None else ""))
        self.steps.setToolTip(tooltip(steps.details if steps is not None else ""))

    @Slot()
    def _on_device(self) -> None:
        self._kept.device = chosen(self.device)
        self.changed.emit("compute")

    @Slot()
    def _on_dtype(self) -> None:
        self._kept.dtype = chosen(self.dtype)
        self.changed.emit("compute")

    @Slot(int)
    def _on_threads(self, threads: int) -> None:
        self._kept.threads = threads
        self.changed.emit("compute")

    @Slot(bool)
    def _on_quick(self, on: bool) -> None:
        self._kept.quick_steps = on
        self.changed.emit("steps")

    @Slot(int)
    def _on_top_n(self, count: int) -> None:
        self._kept.top_n = count
        self.changed.emit("tracing")
