"""The one error that set-up raises."""

from __future__ import annotations


class SetupError(Exception):
    """Set-up cannot go on; says why, and what the user can do about it."""

    def __init__(self, cause: str, remedy: str, details: str = "") -> None:
        self.cause, self.remedy, self.details = cause, remedy, details
        super().__init__(cause)

    def __str__(self) -> str:
        text = f"  Cause:      {self.cause}\n  What to do: {self.remedy}"
        return f"{text}\n  Details:\n{self.details}" if self.details else text
