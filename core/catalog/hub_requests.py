"""Requests to the hub, by its own library: where it is, who asks, and what its answers mean."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from core.catalog import answers, hub_errors
from core.errors import DownloadStoppedError, HubError, NotOnHubError, TooManyRequestsError
from core.models.model_files import CONFIG_BYTES
from resources.language import tr

if TYPE_CHECKING:
    from httpx2 import Response

    from core.catalog.answers import ModelAnswer

SECONDS = 15.0
"""Without a byte, after which a connection counts as cut."""
LONGEST_WAIT = 600.0
"""Seconds that the hub may make a download wait before that is told as a fault."""
USUAL_WAIT = 20.0
"""Where it does not say how long."""
_MOST_WAITS = 5
_QUOTED = 96
"""Characters of a name that an error quotes."""
_Answer = TypeVar("_Answer")


def endpoint() -> str:
    """Where the hub is: HF_ENDPOINT, or the public one."""
    from huggingface_hub import constants

    return (os.environ.get("HF_ENDPOINT") or constants.ENDPOINT).rstrip("/")


def check_name(name: str) -> None:
    """That a model can be called so. Raises NotOnHubError."""
    if not answers.is_name(name):
        raise NotOnHubError(
            tr("“{name}” cannot be the name of a model on the hub.").format(name=name[:_QUOTED]),
            tr("A name is owner/name, of letters, digits, “-”, “_” and “.”."),
        )


def models(text: str, limit: int) -> list[ModelAnswer]:
    """Those that the search finds, the most downloaded first."""
    asked = {"search": text, "sort": "downloads", "limit": str(limit), "config": "true"}
    if not text:
        asked = {**asked, "search": "", "pipeline_tag": "text-generation"}
    with _asking() as where, _response(f"{where}/api/models", asked) as answer:
        return answers.read_models(answers.collect(answer.iter_bytes(), answers.SEARCH_BYTES))


def model(name: str) -> ModelAnswer:
    """What the hub tells of one, with the sizes and digests of its files."""
    check_name(name)
    with _asking(name) as where, _response(f"{where}/api/models/{name}", {"blobs": "true"}) as answer:
        return answers.read_model(answers.collect(answer.iter_bytes(), answers.MODEL_BYTES))


def text_file(name: str, commit: str, path: str) -> bytes:
    """A small file, whole."""
    with file(name, commit, path) as answer:
        try:
            return answers.collect(answer.iter_bytes(), CONFIG_BYTES)
        except answers.WrongAnswerError:
            raise HubError(
                tr("{path} of “{name}” has more than {most:,} bytes.").format(path=path, name=name, most=CONFIG_BYTES),
                tr("Choose another model."),
            ) from None


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
        if answer.status_code >= 400:
            _read_error(answer)
        hf_raise_for_status(answer)
        yield answer


def _read_error(answer: Response) -> None:
    """Read what an error says, up to a limit: the library would read a body without end to its end."""
    try:
        body = answers.collect(answer.iter_bytes(), answers.ERROR_BYTES)
    except answers.WrongAnswerError:
        body = b""
    answer._content = body  # where the client keeps what `read` has read


@contextmanager
def _asking(name: str = "") -> Iterator[str]:
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
        raise hub_errors.no_hub(where, error) from error
    except transport_error() as error:
        raise hub_errors.unreachable(where, error) from error


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
