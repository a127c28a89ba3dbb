"""The hub's models: found by a text, looked at by name, and judged by config.json alone before a byte of weights is
fetched."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

from core.catalog import hub_requests
from core.catalog.hub_model import HubFile, HubModel, is_digest, select_files
from core.common.text import cut_short
from core.errors import AccessError, DecodescopeError, HubError, NoNetworkError, NotOnHubError, TransferError
from core.models.modalities import has_language_head
from core.models.model_entry import BYTES, Fit, cache_bytes, check_memory, describe_shape, family_name
from core.models.model_files import JsonObject
from core.system.file_writing import temporary_folder
from resources.language import tr

if TYPE_CHECKING:
    from core.catalog.hub_requests import ModelInfo, Sibling

RESULT_LIMIT = 12
"""Models that a search shows."""
_REQUESTED_MODELS = 4 * RESULT_LIMIT
"""That the hub is asked for: many write no text."""
_CONTEXT_TOKENS = 2048
"""Of the text whose keys and values are reckoned in."""
_SMALLER_DTYPES = ("bfloat16", "int8", "int4")
_MAX_CONCURRENT_REQUESTS = 6
_MAX_FAMILY_LENGTH = 60


def search(text: str, limit: int = RESULT_LIMIT) -> tuple[HubModel, ...]:
    """Models of the hub that write text, the most downloaded first, each judged.

    Raises NoNetworkError, AccessError, TooManyRequestsError, HubError; NotOnHubError for a whole name that there is
    not. Importing torch is part of the first judgement.
    """
    return tuple(judge(model) for model in find(text, limit))


def find(text: str, limit: int = RESULT_LIMIT) -> tuple[HubModel, ...]:
    """The same, not yet judged: quick."""
    text = text.strip()
    infos = hub_requests.retry_when_rate_limited(
        lambda: hub_requests.search_models(text, _REQUESTED_MODELS), threading.Event()
    )
    names = [info.id for info in infos if has_language_head(info.config or {})][:limit]
    named, trouble = _look_up_exact(text, names)
    with ThreadPoolExecutor(_MAX_CONCURRENT_REQUESTS) as pool:
        found = [*named, *(model for model in pool.map(_look_or_none, names) if model is not None)]
    if not found and trouble is not None:
        raise trouble
    return tuple(found)


def look(name: str, allow_pickle: bool = False, allow_code: bool = False) -> HubModel:
    """What the hub tells of the model with that name, not yet judged. Raises HubError and its subclasses."""
    info = hub_requests.retry_when_rate_limited(lambda: hub_requests.get_model(name), threading.Event())
    files = [_hub_file(name, sibling) for sibling in info.siblings or []]
    chosen = select_files(files, allow_pickle, allow_code)
    kind = cut_short(family_name(info.config or {}), _MAX_FAMILY_LENGTH)
    return HubModel(
        name=info.id if info.id.lower() == name.lower() else name,  # the hub forwards a name that was changed
        commit=_checked_digest(name, info.sha),
        licence=_licence_of(info),
        size=sum(file.size for file in chosen.taken),
        architecture=kind,
        family=kind,
        downloads=info.downloads or 0,
        gated=bool(info.gated),
        private=bool(info.private),
        files=chosen.taken,
        left_out=chosen.left,
        pickled=chosen.pickled,
    )


def judge(model: HubModel) -> HubModel:
    """Whether it can be loaded here and there is memory for it, by its config.json alone. Raises NoNetworkError."""
    if why_not := _unusable_files_reason(model):
        return replace(model, judged=True, why_not=why_not)
    try:
        config, parameters = _blueprint(model)
    except (NoNetworkError, TransferError):
        raise
    except AccessError as error:
        return replace(model, judged=True, why_not=str(error))
    except DecodescopeError as error:
        return replace(model, judged=True, why_not=error.cause)
    fits_as, fit = _best_fit(parameters, config)
    return replace(
        model,
        judged=True,
        architecture=describe_shape(config),
        parameters=parameters,
        fits=fit.ok and not fits_as,
        fits_as=fits_as,
        needed=fit.needed,
        free=fit.free,
        figures=fit.sentence,
        why_not="" if fit.ok else fit.sentence,
    )


def _unusable_files_reason(model: HubModel) -> str:
    """What is wrong with what there is to be taken; empty when nothing is."""
    names = {file.path for file in model.files}
    if "config.json" not in names:
        return tr("It has no config.json: it is not in the form that transformers reads.")
    if select_files(model.files, allow_pickle=True).has_weights:
        return ""
    if model.pickled:
        return tr("It has only pickled weights, which can run any code; they have to be allowed first.")
    if any(path.lower().endswith(".gguf") for path in model.left_out):
        return tr("Its weights are in GGUF form only, which Decodescope does not read.")
    return tr("It has no weights in safetensors form.")


def _blueprint(model: HubModel) -> tuple[JsonObject, int]:
    """Its configuration, and the numbers in what would be built of it. Raises HubError, ModelError,
    FileNotWrittenError."""
    from core.models.config_validation import MODELOPT_FILE
    from core.models.loaded_model import blueprint
    from core.models.model_entry import read_config

    text = hub_requests.get_text_file(model.name, model.commit, "config.json")
    with temporary_folder() as folder:
        alone = folder / model.name.rpartition("/")[2]
        alone.mkdir()
        (alone / "config.json").write_bytes(text)
        if any(path == MODELOPT_FILE for path in (*(file.path for file in model.files), *model.left_out)):
            (alone / MODELOPT_FILE).write_bytes(hub_requests.get_text_file(model.name, model.commit, MODELOPT_FILE))
        return read_config(alone), blueprint(alone, device="cpu").parameters


def _best_fit(parameters: int, config: JsonObject) -> tuple[str, Fit]:
    """Whether it fits in float32, or which weights it fits with; where with none, how far float32 is from it."""
    fits = {kind: _fit_as(kind, parameters, config) for kind in _SMALLER_DTYPES}
    full = _fit_as("float32", parameters, config)
    found = "" if full.ok else next((kind for kind, fit in fits.items() if fit.ok), "")
    return found, fits.get(found, full)


def _fit_as(kind: str, parameters: int, config: JsonObject) -> Fit:
    element = 2 if kind == "bfloat16" else 4  # keys and values of packed weights are float32
    return check_memory(int(parameters * BYTES[kind]), cache_bytes(config, _CONTEXT_TOKENS, element), _CONTEXT_TOKENS)


def _look_up_exact(text: str, names: list[str]) -> tuple[list[HubModel], HubError | None]:
    """The model that is called so, which a search does not tell when it is private; or why it cannot be seen."""
    if "/" not in text or text in names:
        return [], None
    try:
        return [look(text)], None
    except (NotOnHubError, AccessError) as trouble:
        return [], trouble


def _look_or_none(name: str) -> HubModel | None:
    """None where the hub lists it and yet does not show it."""
    try:
        return look(name)
    except (NotOnHubError, AccessError, TransferError):
        return None


def _hub_file(name: str, sibling: Sibling) -> HubFile:
    """By what the hub stores: the digest of a large file, or git's of a small one."""
    large = sibling.lfs
    size = large.size if large is not None else sibling.size
    digest = large.sha256 if large is not None else sibling.blobId
    if type(size) is not int or size < 0:
        raise _missing_details_error(name, sibling.rfilename)
    return HubFile(sibling.rfilename, size, _checked_digest(name, digest))


def _checked_digest(name: str, digits: str | None) -> str:
    """A commit or a digest becomes the name of a file: it is nothing else."""
    if digits is None or not is_digest(digits):
        raise _missing_details_error(name, str(digits))
    return digits


def _missing_details_error(name: str, what: str) -> TransferError:
    return TransferError(
        tr("The hub does not tell what the files of “{name}” are ({what}).").format(name=name, what=what[:80]),
        tr("Try again later, or choose another model."),
    )


def _licence_of(info: ModelInfo) -> str:
    return next(_licences(info), "")


def _licences(info: ModelInfo) -> Iterator[str]:
    """By its tags: the card may be long, and is not always sent."""
    for tag in info.tags or []:
        if tag.startswith("license:"):
            yield tag.removeprefix("license:")
