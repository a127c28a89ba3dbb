"""Tooltips created on demand that append a sentence of the glossary to a widget's own text."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QPoint
from PySide6.QtGui import QHelpEvent
from PySide6.QtWidgets import QWidget

from app.state.glossary_terms import tooltip_html
from app.widgets.plain_text import from_plain_text, might_be_rich, show_rich_tooltip

Topic = Callable[[QPoint], str]
"""What a widget is about at a place within it, by a name that `told` understands; empty for nothing."""
TopicText = Callable[[str], str]
"""What is said of that, as rich text; empty for nothing."""


class LazyTooltip(QObject):
    """Shows it on hover; `refresh_description` puts it into the accessible description, as plain text."""

    def __init__(self, widget: QWidget, topic: Topic, topic_text: TopicText, described: QWidget | None = None) -> None:
        """`described`: the widget that bears the description; `widget` itself unless said."""
        super().__init__(widget)
        self._widget, self.topic, self._topic_text = widget, topic, topic_text
        self._described_widget = described or widget
        self._last_description = self._own_description = ""
        widget.installEventFilter(self)

    def text(self, position: QPoint | None = None) -> str:
        """All that hovering shows there, as rich text."""
        import html  # not before one hovers

        own = self._widget.toolTip()
        rich = own if might_be_rich(own) else html.escape(from_plain_text(own), quote=False).replace("\n", "<br>")
        about = self._topic_html(position)
        return "".join(f"<p>{part}</p>" for part in (rich, about) if part)

    def refresh_description(self) -> None:
        """Say it again in the accessible description, behind what others have put there."""
        now = self._described_widget.accessibleDescription()
        if now != self._last_description:
            self._own_description = now
        about = _plain_from_rich(self._topic_html())
        self._last_description = " ".join(
            part for part in (self._own_description or _plain_from_rich(self._widget.toolTip()), about) if part
        )
        self._described_widget.setAccessibleDescription(self._last_description)

    def _topic_html(self, position: QPoint | None = None) -> str:
        return self._topic_text(self.topic(position or self._widget.rect().center()))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Hovering shows it."""
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            if text := self.text(event.pos()):
                show_rich_tooltip(event.globalPos(), text, self._widget)
                return True
        return super().eventFilter(watched, event)


def _plain_from_rich(rich: str) -> str:
    """Its words alone."""
    from PySide6.QtGui import QTextDocumentFragment  # many never ask

    return (
        " ".join(QTextDocumentFragment.fromHtml(rich).toPlainText().split())
        if might_be_rich(rich)
        else from_plain_text(rich)
    )


def add_glossary_tooltip(
    widget: QWidget, term: str | Callable[[], str], described: QWidget | None = None
) -> LazyTooltip:
    """Explain `widget` by the term of that id, or of what it stands for (`param.top_k`); several stand apart by a
    space. A function is asked anew whenever somebody hovers. `described` bears the accessible description, where that
    is another widget."""
    return LazyTooltip(widget, lambda _place: term if isinstance(term, str) else term(), tooltip_html, described)
