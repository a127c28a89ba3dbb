"""How models of the hub stand: what was found, what is being fetched, what went wrong. Plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from app.state.worker_messages import ErrorReport
from core import catalog

HubModelState = Literal["none", "fetching", "stopping", "paused", "failed", "checking", "whole"]


@dataclass(frozen=True, slots=True)
class DownloadStatus:
    """One model: how far it has come."""

    status: HubModelState = "none"
    done: int = 0
    """Bytes that are there, of `total`."""
    total: int = 0
    progress: catalog.Progress | None = None
    """While it comes, or is checked."""
    error: ErrorReport | None = None
    """Why it failed, or was paused by itself."""
    damaged: tuple[str, ...] | None = None
    """Files that a check has found damaged; None before one."""

    @property
    def is_busy(self) -> bool:
        """Whether something is done for it now."""
        return self.status in ("fetching", "stopping", "checking")
