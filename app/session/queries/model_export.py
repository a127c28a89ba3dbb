"""Writes a model as a GGUF file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from decodescope.app.session.queries.base import Query, Report
from decodescope.core.errors import ModelError
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from decodescope.app.session.local_models import LocalModels


class ModelExportResult(NamedTuple):
    """A GGUF file that was written, and its bytes."""

    path: str
    bytes: int


@dataclass(frozen=True)
class ModelExportQuery(Query):
    """Query to write a model as a GGUF file."""

    path: str
    file_format: str
    """Format of the matrices, one of `core.models.gguf.export.EXPORT_FORMATS`."""

    def run(self, models: LocalModels, report: Report) -> ModelExportResult:
        """Write the file; load the model first if it is not loaded. Raises ModelError, and UnpackableError if it cannot
        be written as GGUF.
        """
        from decodescope import core

        models.load(self.load)
        try:
            path = core.save_gguf(models.loaded_for(self.load), self.path, self.file_format)
            return ModelExportResult(str(path), path.stat().st_size)
        except OSError as error:
            cause = error.strerror or str(error) or tr("the file could not be written")
            raise ModelError(
                tr("{path} could not be saved: {cause}.").format(path=self.path, cause=cause),
                tr("Choose another folder or another name."),
            ) from error

    def remote_result(self, model: str) -> object:
        """Raise ModelError, as the weights stay on the engine."""
        raise ModelError(
            tr("The weights of {model} are on another machine.").format(model=model),
            tr("Only models in this machine's memory can be exported."),
        )
