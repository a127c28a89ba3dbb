"""Export of the selected model as a GGUF file: choose format and file, write it in the worker, show the result."""

from __future__ import annotations

import re
from pathlib import Path

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QWidget

from decodescope.app.control.adapters import AdapterController
from decodescope.app.control.messages import SETUP, Messages
from decodescope.app.control.model_loading import ModelLoadController
from decodescope.app.session.queries.base import Answer
from decodescope.app.session.queries.model_export import ModelExportQuery, ModelExportResult
from decodescope.app.session.session import Session
from decodescope.app.widgets.file_dialogs import initial_folder, open_format_save_dialog
from decodescope.core import words
from decodescope.resources.language import join_names, mark, tr

FORMATS = (
    ("Q8_0", mark("8 bits, Q8_0"), 8.5),
    ("Q4_1", mark("4 bits, Q4_1"), 5.0),
    ("Q4_0", mark("4 bits, Q4_0"), 4.5),
    ("F16", mark("16 bits, F16"), 16.0),
    ("BF16", mark("16 bits, BF16"), 16.0),
    ("F32", mark("32 bits, F32"), 32.0),
)
"""Format, its title, and the bits of a weight with its share of the block's scale."""


_STORED_FORMAT = re.compile(r"[-._](?:I?Q\d\w*|TQ\d\w*|BF16|F16|F32|FP16|FP32|MXFP4)$", re.IGNORECASE)
"""The format of the weights at the end of a file's name."""


def export_stem(model: str) -> str:
    """Return the proposed name of an exported file: that of the model without the format of its present weights."""
    stem = Path(model).name.removesuffix(".gguf")
    return _STORED_FORMAT.sub("", stem) or stem or "model"


class ModelExportController(QObject):
    """Opens its dialog above `parent_window`."""

    def __init__(
        self, parent_window: QWidget, session: Session, loading: ModelLoadController, messages: Messages,
        adapters: AdapterController,
    ) -> None:  # fmt: skip
        super().__init__(messages)
        self._adapters = adapters
        self._parent_window, self._session, self._loading, self._messages = parent_window, session, loading, messages
        self._folder = ""
        session.answered.connect(self._on_answer)

    @Slot()
    def choose_file(self) -> None:
        """Show the dialog for format and file."""
        name = self._loading.request().model
        if not name:
            self._messages.show_setup_error(
                tr("No model is selected"), tr("There is nothing to export."), tr("Select a model first.")
            )
            return
        formats = [f"{self._format_title(title, bits)} (*.gguf)" for _, title, bits in FORMATS]
        title = tr("Export model as GGUF")
        if names := join_names(adapter.name for adapter in self._adapters.choices):
            title = tr("Export model as GGUF with {adapters} merged").format(adapters=names)
        folder = initial_folder(self._folder)
        open_format_save_dialog(self._parent_window, title, f"{export_stem(name)}.gguf", formats, self.export, folder)

    @Slot(str, int)
    def export(self, path: str, place: int) -> None:
        """Write the selected model to `path` in the format at `place` of FORMATS; the answer is shown."""
        file_format, title, _ = FORMATS[place]
        self._folder = str(Path(path).parent)
        self._messages.show_notice(
            tr("Writing {name} ({format}). This may take a minute.").format(name=Path(path).name, format=tr(title)),
            tr("Exporting the model"),
        )
        self._session.request(ModelExportQuery(path, file_format, self._adapters.choices, load=self._loading.request()))

    def _format_title(self, title: str, bits: float) -> str:
        info = self._session.model
        if info is None or info.name != self._loading.request().model or not info.parameters:
            return tr(title)
        size = words.size(round(info.parameters * bits / 8))
        return tr("{format}: about {size}").format(format=tr(title), size=size)

    @Slot(object)
    def _on_answer(self, answer: Answer) -> None:
        if not isinstance(answer.query, ModelExportQuery):
            return
        self._messages.dismiss()
        if isinstance(answer.result, ModelExportResult):
            text = tr("{name}, {size}, can be opened with llama.cpp, LM Studio, Ollama and this program.")
            name = Path(answer.result.path).name
            text = text.format(name=name, size=words.size(answer.result.bytes))
            self._messages.show_notice(" ".join((text, *answer.result.notes)), tr("Model exported"))
        elif answer.error is not None:
            self._messages.show_error(answer.error._replace(kind=SETUP, title=tr("The model was not exported")))
