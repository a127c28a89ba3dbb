"""Requests to the hub through huggingface_hub, and validation of its responses."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

import msgspec

from decodescope.core.catalog import hub_errors
from decodescope.core.errors import DownloadStoppedError, HubError, NotOnHubError, TooManyRequestsError
from decodescope.core.models.gguf.file_names import split_name
from decodescope.core.models.model_files import CONFIG_BYTES
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from httpx2 import Response


MAX_MODELS = 1000
"""Maximum number of search results that are read."""
SEARCH_BYTES = 16 * 2**20
MODEL_BYTES = 64 * 2**20
ERROR_BYTES = 2**20
TOTAL_TIMEOUT_SECONDS = 120.0
"""Timeout for a response that is read as a whole, however slowly it arrives."""
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", re.ASCII)
_VARIANT = re.compile(r"[\w.+ -]{0,200}", re.ASCII)
"""Name of a GGUF model in a repository, which becomes part of a file name."""
_MAX_NAME_LENGTH = 96
_MAX_TAGS = 10_000

_Size: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
_Text: TypeAlias = Annotated[str, msgspec.Meta(max_length=1024)]
_Decoded = TypeVar("_Decoded")


class LfsInfo(msgspec.Struct):
    """The hub's pointer to a large file (LFS)."""

    size: _Size
    sha256: _Text


class Sibling(msgspec.Struct):
    """One file of a repository."""

    rfilename: _Text
    size: _Size | None = None
    blobId: _Text | None = None
    lfs: LfsInfo | None = None


class HubModelInfo(msgspec.Struct):
    """A repository, as returned by a search or a request for its details."""

    id: _Text
    sha: _Text | None = None
    downloads: _Size | None = None
    tags: Annotated[list[_Text], msgspec.Meta(max_length=_MAX_TAGS)] | None = None
    config: dict[str, Any] | None = None
    gated: bool | _Text | None = None
    private: bool | None = None
    siblings: Annotated[list[Sibling], msgspec.Meta(max_length=200_000)] | None = None


class InvalidResponseError(ValueError):
    """The response does not follow the hub's format."""


def is_valid_model_name(name: str) -> bool:
    """Return whether a model, and the folder named after it, can have this name."""
    odd = ("--" in name, ".." in name, name.endswith((".git", ".", "-")), len(name) > _MAX_NAME_LENGTH)
    return _NAME.fullmatch(name) is not None and not any(odd)


def read_models(data: bytes) -> list[HubModelInfo]:
    """Parse the models of a search result and skip invalid ones.

    Raises InvalidResponseError if all are invalid, or if the data is not a list.
    """
    listed = _decode(data, list[msgspec.Raw])[:MAX_MODELS]
    found, trouble = list[HubModelInfo](), None
    for item in listed:
        try:
            found.append(_validate(_decode(item, HubModelInfo)))
        except InvalidResponseError as error:
            trouble = error
    if trouble is not None and not found:
        raise trouble
    return found


def read_model(data: bytes) -> HubModelInfo:
    """Parse one model. Raises InvalidResponseError."""
    return _validate(_decode(data, HubModelInfo))


def read_limited(pieces: Iterable[bytes], limit: int, seconds: float = TOTAL_TIMEOUT_SECONDS) -> bytes:
    """Join the chunks of a response. Raises InvalidResponseError if it exceeds `limit` bytes or takes longer than
    `seconds`.
    """
    found, end = bytearray(), time.monotonic() + seconds
    for piece in pieces:
        found += piece
        if len(found) > limit:
            raise InvalidResponseError(tr("The response exceeds {limit:,} bytes").format(limit=limit))
        if time.monotonic() > end:
            raise InvalidResponseError(tr("The response was incomplete after {seconds:g} s").format(seconds=seconds))
    return bytes(found)


def _decode(data: bytes | msgspec.Raw, kind: type[_Decoded]) -> _Decoded:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidResponseError(str(error)) from None


def _validate(model: HubModelInfo) -> HubModelInfo:
    if not is_valid_model_name(model.id):
        raise InvalidResponseError(tr("“{name}” is not a valid model name").format(name=model.id[:_MAX_NAME_LENGTH]))
    if model.config is not None and not _is_depth_allowed(model.config):
        raise InvalidResponseError(tr("the model's config is nested too deeply"))
    return model


def _is_depth_allowed(value: object, depth: int = 64) -> bool:
    if isinstance(value, dict | list):
        inside = value.values() if isinstance(value, dict) else value
        return depth > 0 and all(_is_depth_allowed(item, depth - 1) for item in inside)
    return True


TIMEOUT_SECONDS = 15.0
"""Timeout without any data, in seconds."""
MAX_WAIT_SECONDS = 600.0
"""Longest rate-limit wait that a download accepts before it raises an error, in seconds."""
DEFAULT_WAIT_SECONDS = 20.0
"""Waiting time if the hub gives none, in seconds."""
_MAX_RETRIES = 5
_MAX_QUOTED_CHARACTERS = 96
"""Maximum length of a name quoted in an error."""
_Answer = TypeVar("_Answer")


def endpoint() -> str:
    """Return the hub's URL: HF_ENDPOINT, or the public one."""
    from huggingface_hub import constants

    return (os.environ.get("HF_ENDPOINT") or constants.ENDPOINT).rstrip("/")


def check_name(name: str) -> None:
    """Check that this is a valid model name. Raises NotOnHubError."""
    if not is_valid_model_name(name):
        raise NotOnHubError(
            tr("“{name}” is not a valid model name.").format(name=name[:_MAX_QUOTED_CHARACTERS]),
            tr("Use owner/name with letters, digits, “-”, “_” and “.”."),
        )


def check_download_name(name: str) -> None:
    """Check that this is a valid model name, or one with a GGUF model. Raises NotOnHubError."""
    repository, variant = split_name(name)
    check_name(repository if _VARIANT.fullmatch(variant) else "")


def search_models(text: str, limit: int) -> list[HubModelInfo]:
    """Search for models, the most downloaded first."""
    query = {"search": text, "sort": "downloads", "limit": str(limit), "config": "true"}
    if not text:
        query = {**query, "search": "", "pipeline_tag": "text-generation"}
    with _translate_hub_errors() as where, _stream_response(f"{where}/api/models", query) as answer:
        return read_models(read_limited(answer.iter_bytes(), SEARCH_BYTES))


def get_model(name: str) -> HubModelInfo:
    """Request the details of one model, with the sizes and digests of its files."""
    check_name(name)
    with (
        _translate_hub_errors(name) as where,
        _stream_response(f"{where}/api/models/{name}", {"blobs": "true"}) as answer,
    ):
        return read_model(read_limited(answer.iter_bytes(), MODEL_BYTES))


def get_text_file(name: str, commit: str, path: str) -> bytes:
    """Download a small file as a whole."""
    with stream_file(name, commit, path) as answer:
        try:
            return read_limited(answer.iter_bytes(), CONFIG_BYTES)
        except InvalidResponseError:
            raise HubError(
                tr("{path} of “{name}” exceeds {most:,} bytes.").format(path=path, name=name, most=CONFIG_BYTES),
                tr("Choose another model."),
            ) from None


def get_file_start(name: str, commit: str, path: str, count: int) -> bytes:
    """Download the first `count` bytes of a file, or all of a shorter one."""
    found = bytearray()
    with stream_file(name, commit, path) as answer:
        for piece in answer.iter_bytes():
            found += piece
            if len(found) >= count:
                break
    return bytes(found[:count])


@contextmanager
def stream_file(name: str, commit: str, path: str, start: int = 0) -> Iterator[Response]:
    """Stream a file from byte `start`. The response headers say whether it really starts there."""
    from huggingface_hub import hf_hub_url

    with _translate_hub_errors(name) as where:
        url = hf_hub_url(name, path, revision=commit, endpoint=where)
        with _stream_response(url, {}, {"Range": f"bytes={start}-"} if start else {}) as answer:
            yield answer


@contextmanager
def _stream_response(url: str, query: dict[str, str], headers: dict[str, str] | None = None) -> Iterator[Response]:
    """Stream a response through huggingface_hub's session; redirects do not receive its token."""
    from huggingface_hub import get_session
    from huggingface_hub.utils import build_hf_headers, hf_raise_for_status

    all_headers = {**build_hf_headers(library_name="decodescope"), "Accept-Encoding": "identity", **(headers or {})}
    with get_session().stream("GET", url, params=query or None, headers=all_headers, timeout=TIMEOUT_SECONDS) as answer:
        if answer.status_code >= 400:
            _read_error(answer)
        hf_raise_for_status(answer)
        yield answer


def _read_error(answer: Response) -> None:
    """Read the body of an error up to a limit, because the library would read it without one."""
    try:
        body = read_limited(answer.iter_bytes(), ERROR_BYTES)
    except InvalidResponseError:
        body = b""
    answer._content = body  # where the client stores a body that was read


@contextmanager
def _translate_hub_errors(name: str = "") -> Iterator[str]:
    """Yield the endpoint, and translate exceptions raised meanwhile into errors of `core.errors`."""
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, OfflineModeIsEnabled

    where = endpoint()
    try:
        yield where
    except OfflineModeIsEnabled:
        raise hub_errors.offline(where) from None
    except HfHubHTTPError as error:
        raise hub_errors.from_status(error, where, name) from error
    except HFValidationError:
        check_name("")
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:  # not a hub's response
        raise hub_errors.not_a_hub(where, error) from error
    except transport_error() as error:
        raise hub_errors.unreachable(where, error) from error


def transport_error() -> type[Exception]:
    """Return the base class of the HTTP client's exceptions, whichever client this release of the library uses."""
    from huggingface_hub.errors import HfHubHTTPError

    root: type[Exception] = HfHubHTTPError.__bases__[0]
    return root


def retry_when_rate_limited(
    request: Callable[[], _Answer], stop: threading.Event, on_wait: Callable[[float], object] = lambda _seconds: None
) -> _Answer:
    """Return the result of `request`, retried after rate limits unless the wait is too long or `stop` is set."""
    for _ in range(_MAX_RETRIES):
        try:
            return request()
        except TooManyRequestsError as error:
            seconds = error.seconds or DEFAULT_WAIT_SECONDS
            if seconds > MAX_WAIT_SECONDS:
                raise
            on_wait(seconds)
            if stop.wait(seconds):
                raise download_stopped_error() from error
    return request()


def download_stopped_error() -> DownloadStoppedError:
    """Return the error that ends a stopped download."""
    return DownloadStoppedError(
        tr("The download was stopped; the downloaded part is kept."), tr("Start it again to resume.")
    )
