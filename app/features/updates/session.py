"""Request the notice of the newest release: one address, no redirection, nothing about this computer."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from email.message import Message
from typing import IO

from decodescope.app.features.updates.state import UpdateError
from decodescope.resources.language import tr

MAX_BYTES = 2**16
TIMEOUT_SECONDS = 15.0
HEADERS = {"User-Agent": "Decodescope", "Accept": "application/json"}
"""Without version and system: the server learns the address of this computer and that the program sent a request."""


class _NoRedirection(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> urllib.request.Request | None:
        """Follow no redirection: only the documented address is contacted."""
        return None


def fetch_notice(address: str, timeout: float = TIMEOUT_SECONDS) -> bytes:
    """Return the document at the address. Raises UpdateError."""
    opener = urllib.request.build_opener(_NoRedirection)
    try:
        with opener.open(urllib.request.Request(address, headers=HEADERS), timeout=timeout) as answer:
            document: bytes = answer.read(MAX_BYTES + 1)
    except urllib.error.HTTPError as error:
        with error:
            raise UpdateError(tr("The server answered with the status {code}.").format(code=error.code)) from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise UpdateError(tr("The server cannot be reached: {reason}.").format(reason=reason)) from None
    if len(document) > MAX_BYTES:
        raise UpdateError(tr("Its answer is too long."), is_suspicious=True)
    return document
