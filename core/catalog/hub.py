"""Requests to the hub, by its own library: where it is, who asks, and what its answers mean."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from core.catalog import faults
from core.errors import DownloadStoppedError, HubError, NotOnHubError, TooManyRequestsError
from core.models.files import CONFIG_BYTES
from resources.language import tr

if TYPE_CHECKING:
    from httpx2 import Response
    from huggingface_hub import ModelInfo

SECONDS = 15.0
"""Without a byte, after which a connection counts as cut."""
LONGEST_WAIT = 600.0
"""Seconds that the hub may make a download wait before that is told as a fault."""
USUAL_WAIT = 20.0
"""Where it does not say how long."""
_MOST_WAITS = 5
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", re.ASCII)
_LONGEST_NAME = 96
_Answer = TypeVar("_Answer")


def endpoint() -> str:
    """Where the hub is: HF_ENDPOINT, or the public one."""
    from huggingface_hub import constants

    return (os.environ.get("HF_ENDPOINT") or constants.ENDPOINT).rstrip("/")


def check_name(name: str) -> None:
    """That a model can be called so. Raises NotOnHubError."""
    odd = ("--" in name, ".." in name, name.endswith((".git", ".", "-")), len(name) > _LONGEST_NAME)
    if not _NAME.fullmatch(name) or any(odd):
        raise NotOnHubError(
            tr("“{name}” cannot be the name of a model on the hub.").format(name=name[:_LONGEST_NAME]),
            tr("A name is owner/name, of letters, digits, “-”, “_” and “.”."),
        )


def models(text: str, limit: int) -> list[ModelInfo]:
    """Those that the search finds, the most downloaded first."""
    from huggingface_hub import ModelInfo

    asked = {"search": text, "sort": "downloads", "limit": str(limit), "config": "true"}
    if not text:
        asked = {**asked, "search": "", "pipeline_tag": "text-generation"}
    with _asking() as where, _response(f"{where}/api/models", asked) as answer:
        answer.read()
        return [ModelInfo(**item) for item in answer.json()]


def model(name: str) -> ModelInfo:
    """What the hub tells of one, with the sizes and digests of its files."""
    from huggingface_hub import HfApi

    check_name(name)
    with _asking(name) as where:
        return HfApi(endpoint=where).model_info(name, files_metadata=True, timeout=SECONDS)


def text_file(name: str, commit: str, path: str) -> bytes:
    """A small file, whole."""
    with file(name, commit, path) as answer:
        body = b""
        for chunk in answer.iter_bytes():
            body += chunk
            if len(body) > CONFIG_BYTES:
                raise HubError(
                    tr("{path} of “{name}” has more than {most:,} bytes.").format(
                        path=path, name=name, most=CONFIG_BYTES
                    ),
                    tr("Choose another model."),
                )
        return body


@contextmanager
def file(name: str, commit: str, path: str, start: int = 0) -> Iterator[Response]:
    """A file's bytes from `start` on, as they come; the answer may have more to say of where they begin."""
    from huggingface_hub import hf_hub_url

    with _asking(name) as where:
        url = hf_hub_url(name, path, revision=commit, endpoint=where)
        with _response(url, {}, {"Range": f"bytes={start}-"} if start else {}) as answer:
            yield answer


@contextmanager
def _response(url: str, asked: dict[str, str], headers: dict[str, str] | None = None) -> Iterator[Response]:
    """By the library's own session; its token goes to the hub, and not on to where the hub redirects."""
    from huggingface_hub import get_session
    from huggingface_hub.utils import build_hf_headers, hf_raise_for_status

    said = {**build_hf_headers(library_name="decodescope"), "Accept-Encoding": "identity", **(headers or {})}
    with get_session().stream("GET", url, params=asked or None, headers=said, timeout=SECONDS) as answer:
        hf_raise_for_status(answer)
        yield answer


@contextmanager
def _asking(name: str = "") -> Iterator[str]:
    """Gives the endpoint; whatever the library raises meanwhile comes out as an error of `core.errors`."""
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, OfflineModeIsEnabled

    where = endpoint()
    try:
        yield where
    except OfflineModeIsEnabled:
        raise faults.offline(where) from None
    except HfHubHTTPError as error:
        raise faults.from_status(error, where, name) from error
    except HFValidationError:
        check_name("")
    except (ValueError, TypeError, KeyError) as error:  # an answer that is not what a hub says
        raise faults.no_hub(where, error) from error
    except transport_error() as error:
        raise faults.unreachable(where, error) from error


def transport_error() -> type[Exception]:
    """The root of what the library's HTTP client raises, whichever client a release of it uses."""
    from huggingface_hub.errors import HfHubHTTPError

    root: type[Exception] = HfHubHTTPError.__bases__[0]
    return root


def patiently(
    ask: Callable[[], _Answer], stop: threading.Event, waits: Callable[[float], object] = lambda _seconds: None
) -> _Answer:
    """What `ask` gives; where the hub wants to be asked later it is, unless that is too late or `stop` is set."""
    for _ in range(_MOST_WAITS):
        try:
            return ask()
        except TooManyRequestsError as error:
            seconds = error.seconds or USUAL_WAIT
            if seconds > LONGEST_WAIT:
                raise
            waits(seconds)
            if stop.wait(seconds):
                raise stopped() from error
    return ask()


def stopped() -> DownloadStoppedError:
    """What a download that was asked to stop ends with."""
    return DownloadStoppedError(
        tr("The download was stopped; what is there is kept."), tr("Start it again, and it goes on from there.")
    )
