"""Load settings of the selected model, and loading it before its first run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot
from PySide6.QtWidgets import QWidget

from decodescope.app.control.messages import DISK_OFFER
from decodescope.app.control.model_choice import ModelChoice
from decodescope.app.control.model_list import ModelList
from decodescope.app.session.session import Session
from decodescope.app.state.worker_messages import ALL_IN_MEMORY, AS_FITS, LoadRequest, is_quantized
from decodescope.app.storage.settings import Settings
from decodescope.core import ModelEntry, catalog, words
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    from decodescope.app.panels.weights_dialog import WeightsDialog, WeightsOption

LOAD_DELAY_MS = 250
"""Delay that prevents loading every model when the list is browsed with the keyboard."""


class ModelLoadController(QObject):
    """Loads the selected model once the window is visible."""

    def __init__(self, model: ModelChoice, models: ModelList, settings: Settings, session: Session) -> None:
        super().__init__(model)
        self._model, self._models, self._settings, self._session = model, models, settings, session
        self._is_preloading = self._is_paused = False
        self._timer = QTimer(self, singleShot=True, interval=LOAD_DELAY_MS)
        self._timer.timeout.connect(self.load)
        model.changed.connect(self._timer.start)
        session.modelReady.connect(self._on_ready)

    @property
    def is_preloading(self) -> bool:
        """Whether the selected model is loaded before its first run."""
        return self._is_preloading

    def request(self) -> LoadRequest:
        """Return the load request of the selected model."""
        return self.request_for(self._model.name)

    def request_for(self, name: str) -> LoadRequest:
        """Return the load request of any model."""
        compute, weights = self._settings.compute, self._settings.models.weights.get(name, "auto")
        memory = ALL_IN_MEMORY if is_quantized(weights) else self._settings.models.memory.get(name, ALL_IN_MEMORY)
        request = LoadRequest(name, compute.device, compute.dtype, compute.threads, weights=weights, memory=memory)
        return self.with_permissions(request)

    @property
    def weight_format(self) -> str:
        """Weight format of the selected model."""
        return self._settings.models.weights.get(self._model.name, "auto")

    @property
    def is_on_card(self) -> bool:
        """Whether the loaded model is on an NVIDIA card."""
        info = self._session.model
        return info is not None and info.device.startswith("cuda")

    @property
    def memory_limit(self) -> int:
        """Memory limit for the weights of the selected model in MiB, or `ALL_IN_MEMORY` or `AS_FITS`."""
        return self._settings.models.memory.get(self._model.name, ALL_IN_MEMORY)

    def set_memory_limit(self, limit: int) -> None:
        """Set the memory limit of the selected model and reload it."""
        limits, name = self._settings.models.memory, self._model.name
        if name and limit != self.memory_limit:
            limits.pop(name, None)
            limits.update({name: limit} if limit != ALL_IN_MEMORY else {})
            self.load()

    def set_weight_format(self, kind: str) -> None:
        """Set the weight format of the selected model and reload it."""
        formats, name = self._settings.models.weights, self._model.name
        if name and kind != self.weight_format:
            formats.pop(name, None)
            formats.update({name: kind} if kind != "auto" else {})
            self.load()

    def with_permissions(self, request: LoadRequest) -> LoadRequest:
        """Return the request with the user's current permissions for its model; permissions in saved or imported
        requests are ignored.
        """
        name, models = request.model, self._settings.models
        return replace(
            request,
            allow_pickle=name in models.allow_pickle,
            allow_remote_code=name in models.allow_remote_code,
            allow_plain=name in models.allow_plain,
        )

    @Slot()
    def start_preloading(self) -> None:
        """Load the selected model from now on before its first run; called when the window is visible."""
        self._is_preloading = not self._is_paused
        self.load()

    def pause(self) -> None:
        """Do not preload until a run needs a model: the shown content needs none."""
        self._is_paused, self._is_preloading = True, False

    @Slot()
    def load(self) -> None:
        """Load the selected model before its first run if it fits in memory."""
        request = self.request()
        is_allowed = request.allow_pickle or request.allow_remote_code
        fits = is_allowed or self._models.fits(request.model, request.weights, request.memory)
        if self._is_preloading and request.model and fits:
            self._session.load_model(request)

    @Slot(str)
    def allow(self, permission: str) -> None:
        """Grant the selected model a permission (`allow_pickle`, `allow_remote_code`) permanently."""
        models, name = self._settings.models, self._model.name
        allowed = {"allow_pickle": models.allow_pickle, "allow_remote_code": models.allow_remote_code}[permission]
        if name and name not in allowed:
            allowed.append(name)

    @Slot()
    def _on_ready(self) -> None:
        self._is_preloading, self._is_paused = True, False

    @Slot()
    def stop(self) -> None:
        """Stop the timer."""
        self._timer.stop()


_FORMATS = {
    "auto": (mark("Automatic"), mark("Format of the file if this machine is fast with it, otherwise float32.")),
    "float32": (mark("float32"), mark("{size}. Exact: the reference for the other formats.")),
    "bfloat16": (
        mark("bfloat16"),
        mark("{size}. Half the size of float32, about three digits: near ties may change."),
    ),
    "int8": (
        mark("int8 (8 bits)"),
        mark("{size}. A quarter of the size, so generation is faster; scores change by about 1 %."),
    ),
    "int4": (
        mark("int4 (4 bits)"),
        mark("{size}. The smallest, for models that do not fit otherwise; scores change by about 10 %."),
    ),
    "fp8": (
        mark("fp8 (8-bit floating point)"),
        mark("{size}. Half the size of bfloat16, computed by an NVIDIA card with the package torchao."),
    ),
}
"""Title and description of each format; `{size}` is the size of the weights."""


class WeightsController(QObject):
    """Opens the dialog above `parent_window` and reloads the model. `changed`: another format or limit
    was chosen.
    """

    changed = Signal()
    measureRequested = Signal()
    throughputEstimated = Signal(str)

    def __init__(self, model: ModelChoice, loading: ModelLoadController, parent_window: QWidget) -> None:
        super().__init__(parent_window)
        self._model, self._loading, self._parent_window, self._throughput_text = model, loading, parent_window, ""
        model.weightsRequested.connect(self.open_dialog)

    @Slot()
    def open_dialog(self) -> WeightsDialog | None:
        """Open the dialog for the selected model; return None without a model."""
        from decodescope.app.panels.weights_dialog import WeightsDialog, WeightsMemorySelector

        entry = self._model.entry
        if entry is None:
            return None
        title = tr("Weights of {model}").format(model=entry.title)
        usual = catalog.weight_bytes(entry, "float32") // 2**21
        memory = WeightsMemorySelector(self._loading.memory_limit, usual)
        memory.show_speed(self._throughput_text)
        dialog = WeightsDialog(
            title, format_lines(entry, self._loading.is_on_card), self._loading.weight_format, memory,
            self._parent_window.window(),
        )  # fmt: skip
        self.throughputEstimated.connect(memory.show_speed)
        dialog.memoryChosen.connect(self.set_memory_limit)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.chosen.connect(self.choose)
        dialog.measureRequested.connect(self.measureRequested)
        dialog.open()
        return dialog

    @Slot(str)
    def show_throughput(self, sentence: str) -> None:
        """Show the predicted speed with layers on the disk; empty if all are in memory."""
        self._throughput_text = sentence
        self.throughputEstimated.emit(sentence)

    @Slot(int)
    def set_memory_limit(self, limit: int) -> None:
        """Set the memory limit of the selected model in MiB, or `ALL_IN_MEMORY` or `AS_FITS`."""
        self._loading.set_memory_limit(limit)
        self.changed.emit()

    @Slot(str)
    def accept_disk_offer(self, name: str) -> None:
        """Keep on the disk what does not fit, if a message offered it."""
        if name == DISK_OFFER:
            self.set_memory_limit(AS_FITS)

    @Slot(str)
    def choose(self, kind: str) -> None:
        """Set the weight format of the selected model."""
        self._loading.set_weight_format(kind)
        self.changed.emit()


def format_lines(entry: ModelEntry, is_on_card: bool) -> list[WeightsOption]:
    """Return every weight format with the size of the model's weights. `is_on_card`: the model is on an NVIDIA card."""
    from decodescope.app.panels.weights_dialog import WeightsOption

    reasons: dict[str, str] = {} if is_on_card else {"fp8": tr("Only for a model on an NVIDIA card.")}
    return [
        WeightsOption(
            kind, tr(title), tr(about).format(size=words.size(catalog.weight_bytes(entry, kind))), reasons.get(kind, "")
        )
        for kind, (title, about) in _FORMATS.items()
    ]
