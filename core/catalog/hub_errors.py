"""Translate errors of the hub and the network into errors of `core.errors`."""

from __future__ import annotations

import time
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING

from decodescope.core.errors import (
    AccessError,
    DecodescopeError,
    DiskFullError,
    FileNotWrittenError,
    HubError,
    NoNetworkError,
    NotOnHubError,
    TooManyRequestsError,
)
from decodescope.core.explain.words import size
from decodescope.core.system.system_errors import DISK_FULL_ERRORS, system_error_reason
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from huggingface_hub.errors import HfHubHTTPError


_MAX_WAIT_SECONDS = 86_400
"""Maximum waiting time accepted from the hub, in seconds."""


def from_status(error: HfHubHTTPError, endpoint: str, name: str = "") -> DecodescopeError:
    """Return the error for a rejected request."""
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
        tr("The hub at {endpoint} returned an error ({status}).").format(endpoint=endpoint, status=status),
        tr("Try again in a few minutes; the downloaded part is kept."),
    )


def _gated(endpoint: str, name: str, has_token: bool) -> AccessError:
    page = f"{endpoint}/{name}"
    if has_token:
        return AccessError(
            tr("“{name}” is gated: its owner has not granted your account access to it.").format(name=name),
            tr("Open {page} in a browser, accept the terms, and try again.").format(page=page),
        )
    return AccessError(
        tr("“{name}” is gated: log in and accept its terms to download it.").format(name=name),
        tr(
            "Open {page} in a browser and accept its terms, then log in: run “hf auth login” in a terminal, "
            "or set HF_TOKEN."
        ).format(page=page),
    )


def _denied(endpoint: str, name: str, status: int, has_token: bool) -> AccessError:
    if has_token:
        return AccessError(
            tr("The hub at {endpoint} rejected your token ({status}).").format(endpoint=endpoint, status=status),
            tr("Log in again: run “hf auth login” in a terminal, or correct HF_TOKEN."),
        )
    return AccessError(
        tr("The hub has no model “{name}” that is visible without logging in.").format(name=name)
        if name
        else tr("The hub at {endpoint} requires a login.").format(endpoint=endpoint),
        tr("Check the name; if it is private, log in: run “hf auth login” in a terminal, or set HF_TOKEN."),
    )


def _missing(endpoint: str, name: str) -> NotOnHubError:
    if not name:
        return NotOnHubError(
            tr("{endpoint} does not respond like a hub.").format(endpoint=endpoint),
            tr("Check HF_ENDPOINT if it is set, and whether a proxy requires a login."),
        )
    return NotOnHubError(
        tr("The hub at {endpoint} has no model “{name}”, or no longer has this file.").format(
            endpoint=endpoint, name=name
        ),
        tr("Check the name (owner/name), or search for it again."),
    )


def waiting_time(error: HfHubHTTPError) -> float | None:
    """Return the seconds until the next request is allowed; None if the hub gives no time."""
    from huggingface_hub.utils import parse_ratelimit_headers

    headers = error.response.headers
    try:
        if (limit := parse_ratelimit_headers(headers)) is not None and limit.remaining == 0:
            return _clamp_wait(limit.reset_in_seconds)
    except ValueError:  # a number with thousands of digits
        pass
    return _clamp_wait(_parse_retry_after(str(headers.get("Retry-After", ""))))


def _parse_retry_after(header: str) -> float | None:
    """Parse a Retry-After header, which gives seconds or a date."""
    try:
        return float(header)
    except ValueError:
        pass
    try:
        return parsedate_to_datetime(header).timestamp() - time.time()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _clamp_wait(seconds: float | None) -> float | None:
    """Clamp the time to between 0 s and one day; None for NaN."""
    if seconds is None or seconds != seconds:
        return None
    return float(min(max(seconds, 0), _MAX_WAIT_SECONDS))


def not_a_hub(endpoint: str, error: Exception) -> HubError:
    """Return the error for a response that is not a hub's, such as a proxy's page."""
    return HubError(
        tr("{endpoint} does not respond like a hub.").format(endpoint=endpoint),
        tr("Check HF_ENDPOINT if it is set, and whether a proxy requires a login."),
        f"{type(error).__name__}: {error}",
    )


def unreachable(endpoint: str, error: Exception) -> NoNetworkError:
    """Return the error for a failed connection."""
    return NoNetworkError(
        tr("The hub at {endpoint} cannot be reached.").format(endpoint=endpoint),
        tr("Check the network, and HF_ENDPOINT if it is set. Models on this disk remain available."),
        f"{type(error).__name__}: {error}",
    )


def offline(endpoint: str) -> NoNetworkError:
    """Return the error for requests made while offline mode is set."""
    return NoNetworkError(
        tr("No request was sent to the hub at {endpoint}, because HF_HUB_OFFLINE is set.").format(endpoint=endpoint),
        tr("Unset HF_HUB_OFFLINE and restart the program. Models on this disk remain available."),
    )


def from_disk(error: OSError, folder: Path, needed: int = 0) -> DecodescopeError:
    """Return the error for a failed write to the cache."""
    if error.errno in DISK_FULL_ERRORS:
        return disk_full(folder, needed, free=0)
    return FileNotWrittenError(
        tr("The hub's cache {folder} is not writable: {reason}.").format(
            folder=folder, reason=system_error_reason(error)
        ),
        tr("Set HF_HUB_CACHE to a writable folder, or correct the permissions of this one."),
    )


def disk_full(folder: Path, needed: int, free: int) -> DiskFullError:
    """Return the error for a full disk: `needed` bytes remain to be written, `free` are available."""
    return DiskFullError(
        tr("The disk of {folder} is full: {wanted} are needed, {free} are free.").format(
            folder=folder, wanted=size(needed), free=size(free)
        ),
        tr("Free some space and resume; the downloaded part is kept. To use another disk, set HF_HUB_CACHE."),
    )
