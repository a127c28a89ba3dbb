"""A text whose tokens are coloured by the reward up to each of them."""

from __future__ import annotations

import html
from collections.abc import Sequence

from PySide6.QtWidgets import QWidget

from app.theme.theme import Theme, theme_for
from app.widgets.plain_text import RichLabel
from resources.language import tr


class RewardColoredText(RichLabel):
    """Blue where the reward has risen, orange where it has fallen; what it is in the end stands behind."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("", parent)
        self.setObjectName("scoredText")
        self.setWordWrap(True)
        self._theme, self._tokens = theme_for("light"), tuple[tuple[str, float], ...]()

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self._theme = theme
        self._update_text()

    def show_tokens(self, tokens: Sequence[tuple[str, float]]) -> None:
        """(text, reward after it) of each token."""
        self._tokens = tuple(tokens)
        self._update_text()

    def _update_text(self) -> None:
        if not self._tokens:
            self.clear()
            return
        before = [self._tokens[0][1], *(reward for _, reward in self._tokens[:-1])]
        largest = max(abs(reward - was) for was, (_, reward) in zip(before, self._tokens, strict=True)) or 1.0
        spans = [
            self._span(text, (reward - was) / largest) for was, (text, reward) in zip(before, self._tokens, strict=True)
        ]
        end = tr("reward {reward:+.2f}").format(reward=self._tokens[-1][1])
        self.setText(f"{''.join(spans)} &nbsp; <b>{html.escape(end)}</b>")
        self.setAccessibleName("".join(text for text, _ in self._tokens) + f" {end}")

    def _span(self, text: str, change: float) -> str:
        colour = self._theme.color("kept" if change > 0 else "refused", min(0.55, abs(change) * 0.55))
        ground = f"rgba({colour.red()},{colour.green()},{colour.blue()},{colour.alphaF():.2f})"
        return f'<span style="background-color: {ground}">{html.escape(text)}</span>'
