"""What the stage asks of how the window looks."""

from __future__ import annotations

from typing import Protocol

from app.theme.theme import Theme


class WindowAppearance(Protocol):
    """How the window looks."""

    @property
    def theme(self) -> Theme:
        """What everything is drawn in, on the stage too."""

    @property
    def settings_theme(self) -> Theme:
        """The theme of the settings."""

    def should_animate(self) -> bool:
        """Whether choices may be seen happening."""
