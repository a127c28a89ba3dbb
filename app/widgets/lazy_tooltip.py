"""A tip that is made when somebody asks for it: what a widget says of itself, and behind it what it is about."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QPoint
from PySide6.QtGui import QHelpEvent
from PySide6.QtWidgets import QWidget

from app.widgets.plain_text import as_written, is_rich, show_rich_tooltip

Topic = Callable[[QPoint], str]
"""What a widget is about at a place within it, by a name that `told` understands; empty for nothing."""
Told = Callable[[str], str]
"""What is said of that, as rich text; empty for nothing."""


class LateTip(QObject):
    """Shows it on hover; `refresh` puts it into the accessible description, as plain text."""

    def __init__(self, widget: QWidget, topic: Topic, told: Told, described: QWidget | None = None) -> None:
        """`described`: the widget that bears the description; `widget` itself unless said."""
        super().__init__(widget)
        self._widget, self.topic, self._told = widget, topic, told
        self._bearer = described or widget
        self._described = self._own = ""
        widget.installEventFilter(self)

    def text(self, place: QPoint | None = None) -> str:
        """All that hovering shows there, as rich text."""
        import html  # not before one hovers

        own = self._widget.toolTip()
        rich = own if is_rich(own) else html.escape(as_written(own), quote=False).replace("\n", "<br>")
        about = self._about(place)
        return "".join(f"<p>{part}</p>" for part in (rich, about) if part)

    def refresh(self) -> None:
        """Say it again in the accessible description, behind what others have put there."""
        now = self._bearer.accessibleDescription()
        if now != self._described:
            self._own = now
        about = _plain(self._about())
        self._described = " ".join(part for part in (self._own or _plain(self._widget.toolTip()), about) if part)
        self._bearer.setAccessibleDescription(self._described)

    def _about(self, place: QPoint | None = None) -> str:
        return self._told(self.topic(place or self._widget.rect().center()))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Hovering shows it."""
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            if text := self.text(event.pos()):
                show_rich_tooltip(event.globalPos(), text, self._widget)
                return True
        return super().eventFilter(watched, event)


def _plain(rich: str) -> str:
    """Its words alone."""
    from PySide6.QtGui import QTextDocumentFragment  # many never ask

    return " ".join(QTextDocumentFragment.fromHtml(rich).toPlainText().split()) if is_rich(rich) else as_written(rich)
