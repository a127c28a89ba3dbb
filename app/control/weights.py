"""What the chosen model's weights are kept as: asked in a dialog, remembered for each model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtWidgets import QWidget

from app.control.messages import DISK_OFFER
from app.control.model_choice import ModelChoice
from app.control.model_loading import ModelLoadController
from app.state.worker_messages import AS_FITS
from core import ModelEntry, catalog, words
from resources.language import mark, tr

if TYPE_CHECKING:
    from app.panels.weights_dialog import WeightsDialog, WeightsOption

_FORMATS = {
    "auto": (mark("Automatic"), mark("As the file has them where that is quick on this machine, else in float32.")),
    "float32": (mark("float32"), mark("{size}. Exact: what everything else is compared with.")),
    "bfloat16": (
        mark("bfloat16"),
        mark("{size}. Half the bytes of float32, with about three digits: near ties may change."),
    ),
    "int8": (
        mark("int8 (eight bits)"),
        mark("{size}. A quarter of the bytes to read for each token, so quicker; scores change by about 1 %."),
    ),
    "int4": (
        mark("int4 (four bits)"),
        mark("{size}. The fewest bytes, for models that fit no other way; scores change by some 10 %."),
    ),
}
"""Titles, and what is said of each; `{size}` is what the weights take."""


class WeightsController(QObject):
    """Opens the dialog above the window that `over` lies in, and has the model loaded anew; `changed` when another kind
    was chosen."""

    changed = Signal()
    measureRequested = Signal()
    throughputEstimated = Signal(str)

    def __init__(self, model: ModelChoice, loading: ModelLoadController, over: QWidget) -> None:
        super().__init__(over)
        self._model, self._loading, self._over, self._throughput_text = model, loading, over, ""
        model.weightsRequested.connect(self.open_dialog)

    @Slot()
    def open_dialog(self) -> WeightsDialog | None:
        """The dialog for the chosen model; None while there is none."""
        from app.panels.weights_dialog import WeightsDialog
        from app.panels.weights_memory import WeightsMemorySelector

        entry = self._model.entry
        if entry is None:
            return None
        title = tr("Weights of {model}").format(model=entry.title)
        usual = catalog.weight_bytes(entry, "float32") // 2**21
        memory = WeightsMemorySelector(self._loading.memory_limit, usual)
        memory.show_speed(self._throughput_text)
        dialog = WeightsDialog(title, format_lines(entry), self._loading.weight_format, memory, self._over.window())
        self.throughputEstimated.connect(memory.show_speed)
        dialog.memoryChosen.connect(self.set_memory_limit)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.chosen.connect(self.choose)
        dialog.measureRequested.connect(self.measureRequested)
        dialog.open()
        return dialog

    @Slot(str)
    def show_throughput(self, sentence: str) -> None:
        """How quick the model is with layers on the disk; empty where all is in memory."""
        self._throughput_text = sentence
        self.throughputEstimated.emit(sentence)

    @Slot(int)
    def set_memory_limit(self, limit: int) -> None:
        """Let the chosen model's weights take so many MiB from now on; `ALL_IN_MEMORY` or `AS_FITS` else."""
        self._loading.set_memory_limit(limit)
        self.changed.emit()

    @Slot(str)
    def accept_disk_offer(self, name: str) -> None:
        """What a message offers where a model does not fit."""
        if name == DISK_OFFER:
            self.set_memory_limit(AS_FITS)

    @Slot(str)
    def choose(self, kind: str) -> None:
        """Keep the chosen model's weights so from now on."""
        self._loading.set_weight_format(kind)
        self.changed.emit()


def format_lines(entry: ModelEntry) -> list[WeightsOption]:
    """Every kind that is offered for a model, with what its weights would take."""
    from app.panels.weights_dialog import WeightsOption

    return [
        WeightsOption(kind, tr(title), tr(about).format(size=words.size(catalog.weight_bytes(entry, kind))))
        for kind, (title, about) in _FORMATS.items()
    ]
