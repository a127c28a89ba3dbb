"""What the hub and the way to it can do wrong, as errors of `core.errors`."""

from __future__ import annotations

import time
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import (
    AccessError,
    DecodescopeError,
    DiskFullError,
    FileNotWrittenError,
    HubError,
    NoNetworkError,
    NotOnHubError,
    TooManyRequestsError,
)
from core.explain.words import size
from core.system.file_writing import DISK_FULL_ERRORS
from resources.language import tr

if TYPE_CHECKING:
    from huggingface_hub.errors import HfHubHTTPError


_MAX_WAIT_SECONDS = 86_400
"""Seconds that the hub is believed to mean."""


def from_status(error: HfHubHTTPError, endpoint: str, name: str = "") -> DecodescopeError:
    """What a refused request means."""
    from huggingface_hub import get_token
    from huggingface_hub.errors import GatedRepoError

    status = error.response.status_code
    if isinstance(error, GatedRepoError):
        return _gated(endpoint, name, has_token=bool(get_token()))
    if status in (401, 403):
        return _denied(endpoint, name, status, has_token=bool(get_token()))
    if status == 404:
        return _missing(endpoint, name)
    if status == 429:
        return TooManyRequestsError(waiting_time(error) or 0.0)
    return HubError(
        tr("The hub at {endpoint} answered with an error ({status}).").format(endpoint=endpoint, status=status),
        tr("Try again in a few minutes; what is downloaded already is kept."),
    )


def _gated(endpoint: str, name: str, has_token: bool) -> AccessError:
    page = f"{endpoint}/{name}"
    if has_token:
        return AccessError(
            tr("“{name}” is gated: its owner has not granted your account access to it.").format(name=name),
            tr("To be let in, open {page} in a browser and accept its terms; then try again.").format(page=page),
        )
    return AccessError(
        tr("“{name}” is gated: only who is logged in and has accepted its terms may download it.").format(name=name),
        tr(
            "Open {page} in a browser and accept its terms, then log in: run “hf auth login” in a terminal, "
            "or set HF_TOKEN."
        ).format(page=page),
    )


def _denied(endpoint: str, name: str, status: int, has_token: bool) -> AccessError:
    if has_token:
        return AccessError(
            tr("The hub at {endpoint} does not accept your token for this ({status}).").format(
                endpoint=endpoint, status=status
            ),
            tr("Log in anew: run “hf auth login” in a terminal, or correct HF_TOKEN."),
        )
    return AccessError(
        tr("The hub has no model “{name}” that can be seen without being logged in.").format(name=name)
        if name
        else tr("The hub at {endpoint} answers only who is logged in.").format(endpoint=endpoint),
        tr("Check the name; if it is private, log in: run “hf auth login” in a terminal, or set HF_TOKEN."),
    )


def _missing(endpoint: str, name: str) -> NotOnHubError:
    if not name:
        return NotOnHubError(
            tr("{endpoint} does not answer as a hub does.").format(endpoint=endpoint),
            tr("Check HF_ENDPOINT where it is set, and whether a proxy asks for a login."),
        )
    return NotOnHubError(
        tr("The hub at {endpoint} has no model “{name}”, or not this file of it any more.").format(
            endpoint=endpoint, name=name
        ),
        tr("Check the name (owner/name), or search for it again."),
    )


def waiting_time(error: HfHubHTTPError) -> float | None:
    """Seconds after which the hub wants to be asked again; None where it does not say."""
    from huggingface_hub.utils import parse_ratelimit_headers

    headers = error.response.headers
    try:
        if (limit := parse_ratelimit_headers(headers)) is not None and limit.remaining == 0:
            return _clamp_wait(limit.reset_in_seconds)
    except ValueError:  # a number of thousands of digits
        pass
    return _clamp_wait(_parse_retry_after(str(headers.get("Retry-After", ""))))


def _parse_retry_after(header: str) -> float | None:
    """Seconds, by a number of them or by a date."""
    try:
        return float(header)
    except ValueError:
        pass
    try:
        return parsedate_to_datetime(header).timestamp() - time.time()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _clamp_wait(seconds: float | None) -> float | None:
    """A time that can be waited for, a day at most; None for what is no number."""
    if seconds is None or seconds != seconds:
        return None
    return float(min(max(seconds, 0), _MAX_WAIT_SECONDS))


def not_a_hub(endpoint: str, error: Exception) -> HubError:
    """The answer is not what a hub says: a proxy's page, another server."""
    return HubError(
        tr("{endpoint} does not answer as a hub does.").format(endpoint=endpoint),
        tr("Check HF_ENDPOINT where it is set, and whether a proxy asks for a login."),
        f"{type(error).__name__}: {error}",
    )


def unreachable(endpoint: str, error: Exception) -> NoNetworkError:
    """No connection could be made."""
    return NoNetworkError(
        tr("The hub at {endpoint} cannot be reached.").format(endpoint=endpoint),
        tr("Check the network, and HF_ENDPOINT where it is set. Everything on this disk works without."),
        f"{type(error).__name__}: {error}",
    )


def offline(endpoint: str) -> NoNetworkError:
    """The person, or whoever set up the machine, wants nothing asked of the network."""
    return NoNetworkError(
        tr("The hub at {endpoint} is not asked: HF_HUB_OFFLINE is set.").format(endpoint=endpoint),
        tr("Unset HF_HUB_OFFLINE and start the program again. Everything on this disk works without."),
    )


def from_disk(error: OSError, folder: Path, needed: int = 0) -> DecodescopeError:
    """What a failed write to the cache means."""
    if error.errno in DISK_FULL_ERRORS:
        return disk_full(folder, needed, free=0)
    return FileNotWrittenError(
        tr("Nothing can be written to the hub's cache, {folder}: {reason}.").format(
            folder=folder, reason=error.strerror or error
        ),
        tr("Set HF_HUB_CACHE to a folder of your own, or correct this one's permissions."),
    )


def disk_full(folder: Path, needed: int, free: int) -> DiskFullError:
    """`needed` bytes are still to come, and `free` are left."""
    return DiskFullError(
        tr("The disk of {folder} has no room: {wanted} are still to be written, {free} are free.").format(
            folder=folder, wanted=size(needed), free=size(free)
        ),
        tr("Make room and go on: what is downloaded already is kept. HF_HUB_CACHE chooses another disk."),
    )
