"""Search the hub's models and judge from config.json alone whether they can run here, before any weights are
downloaded.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

from decodescope.core.catalog import hub_requests
from decodescope.core.catalog.hub_model import (
    GgufVariant,
    HubFile,
    HubModel,
    default_variant,
    gguf_variants,
    is_digest,
    select_files,
    select_gguf_companions,
)
from decodescope.core.common.text import cut_short
from decodescope.core.errors import (
    AccessError,
    DecodescopeError,
    HubError,
    NoNetworkError,
    NotOnHubError,
    TransferError,
)
from decodescope.core.models.gguf.file_names import find_model, split_name
from decodescope.core.models.gguf.file_summary import summarize_gguf
from decodescope.core.models.modalities import has_language_head
from decodescope.core.models.model_entry import BYTES, Fit, cache_bytes, check_memory, describe_shape, family_name
from decodescope.core.models.model_files import JsonObject
from decodescope.core.system.file_writing import temporary_folder
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from decodescope.core.catalog.hub_requests import HubModelInfo, Sibling

RESULT_LIMIT = 12
"""Maximum number of search results."""
_REQUESTED_MODELS = 4 * RESULT_LIMIT
"""Number of models requested from the hub, because many cannot generate text."""
_CONTEXT_TOKENS = 2048
"""Context length assumed for the memory of keys and values."""
_SMALLER_DTYPES = ("bfloat16", "int8", "int4")
_MAX_LISTED = 20
_MAX_CONCURRENT_REQUESTS = 6
_MAX_FAMILY_LENGTH = 60
_GGUF_TAG = "gguf"
_HEADER_BYTES = 2**20
"""Bytes read of a GGUF file to judge it: its metadata up to the vocabulary."""


def search(text: str, limit: int = RESULT_LIMIT) -> tuple[HubModel, ...]:
    """Search the hub for text-generation models, the most downloaded first, and judge each.

    Raises NoNetworkError, AccessError, TooManyRequestsError, HubError; NotOnHubError for a full name that does not
    exist. The first judgement imports torch.
    """
    return tuple(judge(model) for model in find(text, limit))


def find(text: str, limit: int = RESULT_LIMIT) -> tuple[HubModel, ...]:
    """Search like `search`, but without judging the models, which is fast."""
    text = text.strip()
    infos = hub_requests.retry_when_rate_limited(
        lambda: hub_requests.search_models(text, _REQUESTED_MODELS), threading.Event()
    )
    names = [info.id for info in infos if has_language_head(info.config or {}) or _GGUF_TAG in (info.tags or ())]
    names = names[:limit]
    named, trouble = _look_up_exact(text, names)
    with ThreadPoolExecutor(_MAX_CONCURRENT_REQUESTS) as pool:
        found = [*named, *(model for model in pool.map(_hub_model_or_none, names) if model is not None)]
    if not found and trouble is not None:
        raise trouble
    return tuple(found)


def look(name: str, allow_pickle: bool = False, allow_code: bool = False) -> HubModel:
    """Return the hub's details of one model, not yet judged; `owner/name:Q8_0` chooses a GGUF model. Raises HubError
    and its subclasses; TransferError if the repository has no GGUF model of that name.
    """
    hub_requests.check_download_name(name)
    name, wanted = split_name(name)
    info = hub_requests.retry_when_rate_limited(lambda: hub_requests.get_model(name), threading.Event())
    files = [_hub_file(name, sibling) for sibling in info.siblings or []]
    chosen = select_files(files, allow_pickle, allow_code)
    variants = gguf_variants(files) if wanted or not (chosen.has_weights or chosen.pickled) else ()
    if wanted and find_model(variants, wanted) is None:
        raise TransferError(
            tr("“{name}” has no GGUF model “{variant}”.").format(name=name, variant=wanted),
            tr("Choose one of: {names}.").format(names=_variant_names(variants)),
        )
    if variants:
        chosen = select_gguf_companions(files)
    kind = cut_short(family_name(info.config or {}), _MAX_FAMILY_LENGTH)
    model = HubModel(
        name=info.id if info.id.lower() == name.lower() else name,  # the hub redirects renamed models
        commit=_checked_digest(name, info.sha),
        licence=_licence_of(info),
        size=sum(file.size for file in chosen.selected),
        architecture=kind,
        family=kind,
        downloads=info.downloads or 0,
        gated=bool(info.gated),
        private=bool(info.private),
        files=chosen.selected,
        left_out=chosen.left_out,
        pickled=chosen.pickled,
        variants=variants,
    )
    return model.with_variant(wanted or default_variant(variants).key) if variants else model


def _variant_names(variants: Sequence[GgufVariant]) -> str:
    return ", ".join(variant.format_name or variant.key for variant in variants[:_MAX_LISTED]) or "–"


def judge(model: HubModel) -> HubModel:
    """Judge from config.json alone, or the beginning of a GGUF file, whether the model can be loaded and fits into
    memory. Raises NoNetworkError.
    """
    if model.variants:
        return _judge_gguf(model)
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
        needed=fit.needed_bytes,
        free=fit.free,
        figures=fit.sentence,
        why_not="" if fit.ok else fit.sentence,
    )


def _judge_gguf(model: HubModel) -> HubModel:
    """Judge all GGUF models of a repository by the shape in one of them: they differ in the format of their weights."""
    first = model.variants[0].files[0]
    try:
        header = hub_requests.get_file_start(model.name, model.commit, first.path, _HEADER_BYTES)
    except AccessError as error:
        return replace(model, judged=True, why_not=str(error))
    with temporary_folder() as folder:
        file = folder / "model.gguf"
        file.write_bytes(header)
        summary = summarize_gguf(file)
    if summary.problem:
        return replace(model, judged=True, why_not=summary.problem)
    cache = cache_bytes(summary.config, _CONTEXT_TOKENS, 4)
    judged = tuple(_judge_variant(variant, cache) for variant in model.variants)
    found = replace(
        model,
        judged=True,
        architecture=describe_shape(summary.config),
        family=family_name(summary.config),
        parameters=summary.parameters or 0,
        variants=judged,
        variant="",
    )
    is_chosen = model.variant != default_variant(model.variants).key
    return found.with_variant(model.variant if is_chosen else default_variant(judged).key)


def _judge_variant(variant: GgufVariant, cache: int) -> GgufVariant:
    fit = check_memory(variant.size, cache, _CONTEXT_TOKENS)
    return replace(variant, fits=fit.ok, needed=fit.needed_bytes, free=fit.free, figures=fit.sentence)


def _unusable_files_reason(model: HubModel) -> str:
    """Return why the files of the model cannot be used, or "" if they can."""
    names = {file.path for file in model.files}
    if "config.json" not in names and any(path.lower().endswith(".gguf") for path in model.left_out):
        return tr("It has GGUF files, but no complete model among them.")
    if "config.json" not in names:
        return tr("It has no config.json, so it is not in transformers format.")
    if select_files(model.files, allow_pickle=True).has_weights:
        return ""
    if model.pickled:
        return tr("It has only pickled weights, which can run arbitrary code and must be allowed first.")
    return tr("It has no safetensors weights.")


def _blueprint(model: HubModel) -> tuple[JsonObject, int]:
    """Return a model's blueprint: its configuration and parameter count, without weights. Raises HubError, ModelError,
    FileNotWrittenError.
    """
    from decodescope.core.models.config_validation import MODELOPT_FILE
    from decodescope.core.models.loaded_model import blueprint
    from decodescope.core.models.model_entry import read_config

    text = hub_requests.get_text_file(model.name, model.commit, "config.json")
    with temporary_folder() as folder:
        alone = folder / model.name.rpartition("/")[2]
        alone.mkdir()
        (alone / "config.json").write_bytes(text)
        if any(path == MODELOPT_FILE for path in (*(file.path for file in model.files), *model.left_out)):
            (alone / MODELOPT_FILE).write_bytes(hub_requests.get_text_file(model.name, model.commit, MODELOPT_FILE))
        return read_config(alone), blueprint(alone, device="cpu").parameters


def _best_fit(parameters: int, config: JsonObject) -> tuple[str, Fit]:
    """Return the dtype that fits ("" for float32) and its fit; if none fits, "" and the fit in float32."""
    fits = {kind: _fit_as(kind, parameters, config) for kind in _SMALLER_DTYPES}
    full = _fit_as("float32", parameters, config)
    found = "" if full.ok else next((kind for kind, fit in fits.items() if fit.ok), "")
    return found, fits.get(found, full)


def _fit_as(kind: str, parameters: int, config: JsonObject) -> Fit:
    element = 2 if kind == "bfloat16" else 4  # packed weights use float32 keys and values
    return check_memory(int(parameters * BYTES[kind]), cache_bytes(config, _CONTEXT_TOKENS, element), _CONTEXT_TOKENS)


def _look_up_exact(text: str, names: list[str]) -> tuple[list[HubModel], HubError | None]:
    """Look up the model with exactly that name, which a search omits if it is private; or return why it is not
    visible.
    """
    if "/" not in text or text in names:
        return [], None
    try:
        return [look(text)], None
    except (NotOnHubError, AccessError) as trouble:
        return [], trouble


def _hub_model_or_none(name: str) -> HubModel | None:
    """Return None for a model that the hub lists but does not show."""
    try:
        return look(name)
    except (NotOnHubError, AccessError, TransferError):
        return None


def _hub_file(name: str, sibling: Sibling) -> HubFile:
    """Return the file with the digest the hub stores: SHA-256 of a large file, or git's SHA-1 of a small one."""
    large = sibling.lfs
    size = large.size if large is not None else sibling.size
    digest = large.sha256 if large is not None else sibling.blobId
    if type(size) is not int or size < 0:
        raise _missing_details_error(name, sibling.rfilename)
    return HubFile(sibling.rfilename, size, _checked_digest(name, digest))


def _checked_digest(name: str, digits: str | None) -> str:
    """Check a commit or digest, because it becomes a file name."""
    if digits is None or not is_digest(digits):
        raise _missing_details_error(name, str(digits))
    return digits


def _missing_details_error(name: str, detail: str) -> TransferError:
    return TransferError(
        tr("The hub gives no details of the files of “{name}” ({what}).").format(name=name, what=detail[:80]),
        tr("Try again later, or choose another model."),
    )


def _licence_of(info: HubModelInfo) -> str:
    return next(_licences(info), "")


def _licences(info: HubModelInfo) -> Iterator[str]:
    """Read the licence from the tags, because the model card may be long and is not always included."""
    for tag in info.tags or []:
        if tag.startswith("license:"):
            yield tag.removeprefix("license:")
