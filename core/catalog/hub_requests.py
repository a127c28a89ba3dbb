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

from core.catalog import hub_errors
from core.errors import DownloadStoppedError, HubError, NotOnHubError, TooManyRequestsError
from core.models.model_files import CONFIG_BYTES
from resources.language import tr

if TYPE_CHECKING:
    from httpx2 import Response


MAX_MODELS = 1000
"""Entries of a search that are read."""
SEARCH_BYTES = 16 * 2**20
MODEL_BYTES = 64 * 2**20
ERROR_BYTES = 2**20
TOTAL_TIMEOUT_SECONDS = 120.0
"""For an answer that is read at once, however slowly it comes."""
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", re.ASCII)
_MAX_NAME_LENGTH = 96
_MAX_TAGS = 10_000

_Size: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
_Text: TypeAlias = Annotated[str, msgspec.Meta(max_length=1024)]
_Decoded = TypeVar("_Decoded")


class LfsInfo(msgspec.Struct):
    """How the hub stores a large file."""

    size: _Size
    sha256: _Text


class Sibling(msgspec.Struct):
    """A file of a repository."""

    rfilename: _Text
    size: _Size | None = None
    blobId: _Text | None = None
    lfs: LfsInfo | None = None


class ModelInfo(msgspec.Struct):
    """A repository, as a search lists it or as it is described by itself."""

    id: _Text
    sha: _Text | None = None
    downloads: _Size | None = None
    tags: Annotated[list[_Text], msgspec.Meta(max_length=_MAX_TAGS)] | None = None
    config: dict[str, Any] | None = None
    gated: bool | _Text | None = None
    private: bool | None = None
    siblings: Annotated[list[Sibling], msgspec.Meta(max_length=200_000)] | None = None


class InvalidResponseError(ValueError):
    """The answer is not what a hub says."""


def is_valid_model_name(name: str) -> bool:
    """Whether a model can be called so, and a folder after it."""
    odd = ("--" in name, ".." in name, name.endswith((".git", ".", "-")), len(name) > _MAX_NAME_LENGTH)
    return _NAME.fullmatch(name) is not None and not any(odd)


def read_models(data: bytes) -> list[ModelInfo]:
    """The models that a search lists; one that is described wrongly is left out. Raises WrongAnswerError where all
    are, or where it is no list."""
    listed = _decode(data, list[msgspec.Raw])[:MAX_MODELS]
    found, trouble = list[ModelInfo](), None
    for item in listed:
        try:
            found.append(_validate(_decode(item, ModelInfo)))
        except InvalidResponseError as error:
            trouble = error
    if trouble is not None and not found:
        raise trouble
    return found


def read_model(data: bytes) -> ModelInfo:
    """One model. Raises WrongAnswerError."""
    return _validate(_decode(data, ModelInfo))


def read_limited(pieces: Iterable[bytes], limit: int, seconds: float = TOTAL_TIMEOUT_SECONDS) -> bytes:
    """The pieces of an answer in one. Raises WrongAnswerError for one without end."""
    found, end = bytearray(), time.monotonic() + seconds
    for piece in pieces:
        found += piece
        if len(found) > limit:
            raise InvalidResponseError(tr("more than {limit:,} bytes").format(limit=limit))
        if time.monotonic() > end:
            raise InvalidResponseError(tr("not complete after {seconds:g} s").format(seconds=seconds))
    return bytes(found)


def _decode(data: bytes | msgspec.Raw, kind: type[_Decoded]) -> _Decoded:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidResponseError(str(error)) from None


def _validate(model: ModelInfo) -> ModelInfo:
    if not is_valid_model_name(model.id):
        raise InvalidResponseError(
            tr("“{name}” cannot be the name of a model").format(name=model.id[:_MAX_NAME_LENGTH])
        )
    if model.config is not None and not _is_depth_allowed(model.config):
        raise InvalidResponseError(tr("its config is nested too deeply"))
    return model


def _is_depth_allowed(value: object, depth: int = 64) -> bool:
    if isinstance(value, dict | list):
        inside = value.values() if isinstance(value, dict) else value
        return depth > 0 and all(_is_depth_allowed(item, depth - 1) for item in inside)
    return True


TIMEOUT_SECONDS = 15.0
"""Without a byte, after which a connection counts as cut."""
MAX_WAIT_SECONDS = 600.0
"""Seconds that the hub may make a download wait before that is told as a fault."""
DEFAULT_WAIT_SECONDS = 20.0
"""Where it does not say how long."""
_MAX_RETRIES = 5
_MAX_QUOTED_CHARACTERS = 96
"""Characters of a name that an error quotes."""
_Answer = TypeVar("_Answer")


def endpoint() -> str:
    """Where the hub is: HF_ENDPOINT, or the public one."""
    from huggingface_hub import constants

    return (os.environ.get("HF_ENDPOINT") or constants.ENDPOINT).rstrip("/")


def check_name(name: str) -> None:
    """That a model can be called so. Raises NotOnHubError."""
    if not is_valid_model_name(name):
        raise NotOnHubError(
            tr("“{name}” cannot be the name of a model on the hub.").format(name=name[:_MAX_QUOTED_CHARACTERS]),
            tr("A name is owner/name, of letters, digits, “-”, “_” and “.”."),
        )


def search_models(text: str, limit: int) -> list[ModelInfo]:
    """Those that the search finds, the most downloaded first."""
    query = {"search": text, "sort": "downloads", "limit": str(limit), "config": "true"}
    if not text:
        query = {**query, "search": "", "pipeline_tag": "text-generation"}
    with _translate_hub_errors() as where, _stream_response(f"{where}/api/models", query) as answer:
        return read_models(read_limited(answer.iter_bytes(), SEARCH_BYTES))


def get_model(name: str) -> ModelInfo:
    """What the hub tells of one, with the sizes and digests of its files."""
    check_name(name)
    with (
        _translate_hub_errors(name) as where,
        _stream_response(f"{where}/api/models/{name}", {"blobs": "true"}) as answer,
    ):
        return read_model(read_limited(answer.iter_bytes(), MODEL_BYTES))


def get_text_file(name: str, commit: str, path: str) -> bytes:
    """A small file, whole."""
    with stream_file(name, commit, path) as answer:
        try:
            return read_limited(answer.iter_bytes(), CONFIG_BYTES)
        except InvalidResponseError:
            raise HubError(
                tr("{path} of “{name}” has more than {most:,} bytes.").format(path=path, name=name, most=CONFIG_BYTES),
                tr("Choose another model."),
            ) from None


@contextmanager
def stream_file(name: str, commit: str, path: str, start: int = 0) -> Iterator[Response]:
    """A file's bytes from `start` on, as they come; the answer may have more to say of where they begin."""
    from huggingface_hub import hf_hub_url

    with _translate_hub_errors(name) as where:
        url = hf_hub_url(name, path, revision=commit, endpoint=where)
        with _stream_response(url, {}, {"Range": f"bytes={start}-"} if start else {}) as answer:
            yield answer


@contextmanager
def _stream_response(url: str, query: dict[str, str], headers: dict[str, str] | None = None) -> Iterator[Response]:
    """By the library's own session; its token goes to the hub, and not on to where the hub redirects."""
    from huggingface_hub import get_session
    from huggingface_hub.utils import build_hf_headers, hf_raise_for_status

    all_headers = {**build_hf_headers(library_name="decodescope"), "Accept-Encoding": "identity", **(headers or {})}
    with get_session().stream("GET", url, params=query or None, headers=all_headers, timeout=TIMEOUT_SECONDS) as answer:
        if answer.status_code >= 400:
            _read_error(answer)
        hf_raise_for_status(answer)
        yield answer


def _read_error(answer: Response) -> None:
    """Read what an error says, up to a limit: the library would read a body without end to its end."""
    try:
        body = read_limited(answer.iter_bytes(), ERROR_BYTES)
    except InvalidResponseError:
        body = b""
    answer._content = body  # where the client keeps what `read` has read


@contextmanager
def _translate_hub_errors(name: str = "") -> Iterator[str]:
    """Gives the endpoint; whatever the library raises meanwhile comes out as an error of `core.errors`."""
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
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:  # not what a hub says
        raise hub_errors.not_a_hub(where, error) from error
    except transport_error() as error:
        raise hub_errors.unreachable(where, error) from error


def transport_error() -> type[Exception]:
    """The root of what the library's HTTP client raises, whichever client a release of it uses."""
    from huggingface_hub.errors import HfHubHTTPError

    root: type[Exception] = HfHubHTTPError.__bases__[0]
    return root


def retry_when_rate_limited(
    request: Callable[[], _Answer], stop: threading.Event, on_wait: Callable[[float], object] = lambda _seconds: None
) -> _Answer:
    """What `request` gives; where the hub wants to be asked later it is, unless that is too late or `stop` is set."""
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
    """What a download that was asked to stop ends with."""
    return DownloadStoppedError(
        tr("The download was stopped; what is there is kept."), tr("Start it again, and it goes on from there.")
    )
