"""Writes a model as a GGUF file."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from decodescope.app.session.queries.base import Query, Report
from decodescope.core.common.lightweight_dataclass import plain
from decodescope.core.errors import ModelError
from decodescope.core.system.system_errors import system_error_reason, writing_remedy
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from decodescope.app.session.local_models import LocalModels
    from decodescope.core import AdapterChoice


class ModelExportResult(NamedTuple):
    """A GGUF file that was written."""

    path: str
    bytes: int
    notes: tuple[str, ...] = ()
    """Sentences about what is merged, not contained, or not read by llama.cpp."""


@plain(frozen=True)
class ModelExportQuery(Query):
    """Query to write a model as a GGUF file."""

    path: str
    file_format: str
    """Format of the matrices, one of `core.models.gguf.export.EXPORT_FORMATS`."""
    adapters: tuple[AdapterChoice, ...] = ()
    """Adapters that are merged into the weights."""

    def run(self, models: LocalModels, report: Report) -> ModelExportResult:
        """Write the file; load the model first if it is not loaded. Raises ModelError, and UnpackableError if it cannot
        be written as GGUF.
        """
        from decodescope import core

        models.load(self.load)
        try:
            notes: list[str] = []
            model = models.loaded_for(self.load)
            with model.adapters.using(self.adapters):
                path = core.save_gguf(model, self.path, self.file_format, notes)
            return ModelExportResult(str(path), path.stat().st_size, tuple(notes))
        except OSError as error:
            raise ModelError(
                tr("{path} could not be saved: {cause}.").format(path=self.path, cause=system_error_reason(error)),
                writing_remedy(error, tr("Choose another folder or another name.")),
            ) from error

    def remote_result(self, model: str) -> object:
        """Raise ModelError, as the weights stay on the engine."""
        raise ModelError(
            tr("The weights of {model} are on another machine.").format(model=model),
            tr("Only models in this machine's memory can be exported."),
        )
