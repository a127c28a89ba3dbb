"""A model from the hub into its library's own cache: looked at, checked for room, fetched file by file, laid out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from core.catalog.download_store import DownloadStore
from core.catalog.file_download import FINISHED, DownloadContext, DownloadMeter, Progress, fetch
from core.catalog.hub_model import HubFile, HubModel, is_index, is_safe, select_files
from core.catalog.model_search import look
from core.errors import CorruptWeightsError, PickledWeightsError, TransferError
from core.models.model_files import shard_names
from resources.language import tr


def download(
    name: str,
    progress: Callable[[Progress], object] | None = None,
    *,
    stop: threading.Event | None = None,
    allow_pickle: bool = False,
    allow_code: bool = False,
    anew: Sequence[str] = (),
) -> Path:
    """The folder of the model, fetched as far as it is not there; `core.load(name)` finds it from then on.

    Goes on where an earlier call ended, however that ended. `progress` is called from this thread, ten times a second
    at most. Once `stop` is set it ends with DownloadStoppedError and keeps what is there. Files of `anew` are
    fetched again. Raises NotOnHubError, AccessError, NoNetworkError, TooManyRequestsError, TransferError, HubError,
    DiskFullError, FileNotWrittenError, PickledWeightsError.
    """
    model = look(name, allow_pickle, allow_code)
    _check_weights(model)
    store = DownloadStore(model.name)
    for path in anew:
        _delete_file(store, model, path)
    meter = DownloadMeter(model.name, model.size, progress)
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
    """Small files first: what they say of the others is checked before those are asked for."""
    for file in model.files:
        fetch(file, context)
        if is_index(file.path):
            _check_shards(model, context.store.blob(file))


def _check_weights(model: HubModel) -> None:
    chosen = select_files(model.files, allow_pickle=True)
    if chosen.has_weights:
        return
    if model.pickled:
        raise PickledWeightsError(
            tr("“{name}” has only pickled weights. Loading a pickle can run any code in it.").format(name=model.name),
            tr("Allow it for this model if you trust its source, or choose another."),
        )
    raise TransferError(
        tr("“{name}” has no weights in safetensors form.").format(name=model.name), tr("Choose another model.")
    )


def _check_shards(model: HubModel, index: Path) -> None:
    """That every file the index names is one of those that are taken."""
    try:
        named = shard_names(index)
    except CorruptWeightsError as error:
        raise TransferError(
            tr("The weights of “{name}” are not whole on the hub: {reason}").format(
                name=model.name, reason=error.cause
            ),
            tr("Choose another model, or tell its owner."),
        ) from error
    there = {file.path for file in model.files}
    if missing := sorted(str(shard) for shard in named if shard not in there or not is_safe(str(shard))):
        raise TransferError(
            tr("The weights of “{name}” are not whole on the hub: {file} is missing.").format(
                name=model.name, file=missing[0]
            ),
            tr("Choose another model, or tell its owner."),
        )


def _delete_file(store: DownloadStore, model: HubModel, path: str) -> None:
    """Have this one fetched again."""
    for file in _files_at(model.files, path):
        (store.snapshot(model.commit) / file.path).unlink(missing_ok=True)
        store.blob(file).unlink(missing_ok=True)


def _files_at(files: Sequence[HubFile], path: str) -> list[HubFile]:
    return [file for file in files if file.path == path]
