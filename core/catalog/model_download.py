"""Download a model into huggingface_hub's cache: request its details, check the space, fetch each file, link the
snapshot.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from decodescope.core.catalog.download_store import DownloadStore
from decodescope.core.catalog.file_download import FINISHED, DownloadContext, DownloadMeter, DownloadProgress, fetch
from decodescope.core.catalog.hub_model import HubFile, HubModel, is_index, is_safe, select_files
from decodescope.core.catalog.model_search import look
from decodescope.core.errors import CorruptWeightsError, PickledWeightsError, TransferError
from decodescope.core.models.model_files import shard_names
from decodescope.resources.language import tr


def download(
    name: str,
    progress: Callable[[DownloadProgress], object] | None = None,
    *,
    stop: threading.Event | None = None,
    allow_pickle: bool = False,
    allow_code: bool = False,
    again: Sequence[str] = (),
) -> Path:
    """Download the missing files of a model and return its folder; `core.load(name)` finds it afterwards.

    Of a repository of GGUF files one model is downloaded: `owner/name:Q8_0`, by its format or its file's name. Resumes
    an earlier download. `progress` is called from this thread, at most ten times per second. Setting `stop`
    ends the download with DownloadStoppedError and keeps the received bytes. Files in `again` are downloaded again.
    Raises NotOnHubError, AccessError, NoNetworkError, TooManyRequestsError, TransferError, HubError, DiskFullError,
    FileNotWrittenError, PickledWeightsError.
    """
    model = look(name, allow_pickle, allow_code)
    _check_weights(model)
    store = DownloadStore(model.download_name)
    for path in again:
        _delete_file(store, model, path)
    meter = DownloadMeter(model.download_name, model.size, progress)
    if not store.is_complete(model):
        with store.locked():
            store.begin(model)
            _fetch_all(model, DownloadContext(model.name, model.commit, store, meter, stop or threading.Event()))
            store.finish(model)
    else:
        meter.begin_file("", model.size)
    meter.report(FINISHED)
    return store.snapshot(model.commit)


def _fetch_all(model: HubModel, context: DownloadContext) -> None:
    """Fetch the small files first, because the index is checked before the shards are requested."""
    for file in model.files:
        fetch(file, context)
        if is_index(file.path):
            _check_shards(model, context.store.blob(file))


def _check_weights(model: HubModel) -> None:
    if model.variant or select_files(model.files, allow_pickle=True).has_weights:
        return
    if model.pickled:
        raise PickledWeightsError(
            tr("“{name}” has only pickled weights. Loading a pickle can run arbitrary code.").format(name=model.name),
            tr("Allow it for this model if you trust its source, or choose another model."),
        )
    raise TransferError(tr("“{name}” has no safetensors weights.").format(name=model.name), tr("Choose another model."))


def _check_shards(model: HubModel, index: Path) -> None:
    """Check that every shard in the index is among the files to download."""
    try:
        named = shard_names(index)
    except CorruptWeightsError as error:
        raise TransferError(
            tr("The weights of “{name}” on the hub are incomplete: {reason}").format(
                name=model.name, reason=error.cause
            ),
            tr("Choose another model, or notify its owner."),
        ) from error
    there = {file.path for file in model.files}
    if missing := sorted(str(shard) for shard in named if shard not in there or not is_safe(str(shard))):
        raise TransferError(
            tr("The weights of “{name}” on the hub are incomplete: {file} is missing.").format(
                name=model.name, file=missing[0]
            ),
            tr("Choose another model, or notify its owner."),
        )


def _delete_file(store: DownloadStore, model: HubModel, path: str) -> None:
    """Delete a file, so that it is downloaded again."""
    for file in _files_at(model.files, path):
        (store.snapshot(model.commit) / file.path).unlink(missing_ok=True)
        store.blob(file).unlink(missing_ok=True)


def _files_at(files: Sequence[HubFile], path: str) -> list[HubFile]:
    return [file for file in files if file.path == path]
