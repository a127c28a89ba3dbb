"""Tooltips created on demand that append a sentence of the glossary to a widget's own text."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QPoint
from PySide6.QtGui import QHelpEvent
from PySide6.QtWidgets import QWidget

from decodescope.app.state.glossary_terms import tooltip_html
from decodescope.app.widgets.plain_text import from_plain_text, might_be_rich, show_rich_tooltip

Topic = Callable[[QPoint], str]
"""Returns the topic at a position of a widget, as a name for `TopicText`; empty for none."""
TopicText = Callable[[str], str]
"""Returns the explanation of a topic as rich text; empty for none."""


class LazyTooltip(QObject):
    """Shows the tooltip on hover; `refresh_description` puts it into the accessible description as plain text."""

    def __init__(self, widget: QWidget, topic: Topic, topic_text: TopicText, described: QWidget | None = None) -> None:
        """Install the tooltip. `described`: the widget that receives the description, `widget` by default."""
        super().__init__(widget)
        self._widget, self.topic, self._topic_text = widget, topic, topic_text
        self._described_widget = described or widget
        self._last_description = self._own_description = ""
        widget.installEventFilter(self)

    def text(self, position: QPoint | None = None) -> str:
        """Return the full tooltip at a position as rich text."""
        import html  # import only on hover

        own = self._widget.toolTip()
        rich = own if might_be_rich(own) else html.escape(from_plain_text(own), quote=False).replace("\n", "<br>")
        about = self._topic_html(position)
        return "".join(f"<p>{part}</p>" for part in (rich, about) if part)

    def refresh_description(self) -> None:
        """Update the accessible description: its own text first, then the explanation."""
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
        """Show the tooltip on hover."""
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            if text := self.text(event.pos()):
                show_rich_tooltip(event.globalPos(), text, self._widget)
                return True
        return super().eventFilter(watched, event)


def _plain_from_rich(rich: str) -> str:
    """Return the text without markup."""
    from PySide6.QtGui import QTextDocumentFragment  # import only when needed

    return (
        " ".join(QTextDocumentFragment.fromHtml(rich).toPlainText().split())
        if might_be_rich(rich)
        else from_plain_text(rich)
    )


def add_glossary_tooltip(
    widget: QWidget, term: str | Callable[[], str], described: QWidget | None = None
) -> LazyTooltip:
    """Explain `widget` by a glossary term id, or by the name of a setting (`param.top_k`).

    Several ids are separated by spaces. A function is called on each hover. `described`: the widget that receives the
    accessible description, if it is another one.
    """
    return LazyTooltip(widget, lambda _place: term if isinstance(term, str) else term(), tooltip_html, described)
