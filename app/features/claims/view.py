"""Parts of a claim card: the interval as a picture, and an example with both texts."""

from __future__ import annotations

from typing import NamedTuple

from PySide6.QtCore import QPointF, QRect, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QFont, QFontMetrics, QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QListView,
    QPushButton,
    QSizePolicy,
    QStyle,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets.building import STRETCH, arrange, set_up
from decodescope.app.widgets.labels import WrappedLabel
from decodescope.app.widgets.painted_rows import Index, ThemedDelegate
from decodescope.app.widgets.plain_text import PlainLabel, caption, tooltip
from decodescope.core import claims
from decodescope.core.claims import ClaimExample
from decodescope.resources.language import tr

MAX_EXAMPLE_LETTERS = 600
"""Longer texts of an example are cut; the run shows all of it."""


class ClaimDelegate(ThemedDelegate):
    """Paints a row of the list: the title in as many lines as it needs, and muted below it subject and verdict."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        if self.theme is None:
            return super().sizeHint(option, index)
        view = self.parent()
        assert isinstance(view, QListView)
        width = view.viewport().width() - 2 * view.spacing()
        return QSize(width, sum(rect.height() for rect, *_ in self._lines(index, width)) + 2 * self.theme.px(_ROW_GAP))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        theme = self.theme
        if theme is None:
            super().paint(painter, option, index)
            return
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        for state, color in ((QStyle.StateFlag.State_Selected, "tint"), (QStyle.StateFlag.State_MouseOver, "hover")):
            if option.state & state:
                painter.setBrush(theme.color(color))
                painter.drawRoundedRect(option.rect, theme.px(5), theme.px(5))
                break
        top = option.rect.top() + theme.px(_ROW_GAP)
        for rect, text, font, color in self._lines(index, option.rect.width()):
            painter.setFont(font)
            painter.setPen(theme.color(color))
            painter.drawText(rect.translated(option.rect.left(), top), Qt.TextFlag.TextWordWrap, text)
            top += rect.height()
        painter.restore()

    def _lines(self, index: Index, width: int) -> list[tuple[QRect, str, QFont, str]]:
        """Return place, text, font and colour of both texts, each from the top of its own rectangle."""
        theme, found = self.theme, []
        assert theme is not None
        title, _, below = str(index.data()).partition("\n")
        room = QRect(theme.px(8), 0, width - 2 * theme.px(8), 10_000)
        for text, font, color in ((title, theme.font(13, 500), "text"), (below, theme.font(12), "muted")):
            height = QFontMetrics(font).boundingRect(room, Qt.TextFlag.TextWordWrap, text).height()
            found.append((QRect(room.left(), 0, room.width(), height), text, font, color))
        return found


_ROW_GAP = 5
"""Space above and below the texts of a row in pixels at 100 %."""


class IntervalShape(NamedTuple):
    """Values of the picture, in units of the measure."""

    mean: float
    low: float
    high: float
    claimed: tuple[float | None, float | None]
    """Range of differences for which the claim holds; None for no limit."""
    digits: int
    verdict: str
    """Verdict by its name in the core."""


class IntervalPicture(Themed, QWidget):
    """A 95 % interval on an axis, with 0 and the range in which the claim holds."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._shape: IntervalShape | None = None
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(tr("Interval of the difference"))

    @property
    def shape(self) -> IntervalShape | None:
        """The interval that is shown; None for none."""
        return self._shape

    def show_shape(self, shape: IntervalShape | None, description: str) -> None:
        """Show an interval; `description` is the same in words."""
        self._shape = shape
        set_up(self, description=description, tooltip=tooltip(description))
        self.setVisible(shape is not None)
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(self._theme.px(320), self._theme.px(34) + 2 * self._line)

    def minimumSizeHint(self) -> QSize:
        return QSize(self._theme.px(200), self.sizeHint().height())

    @property
    def _line(self) -> int:
        return round(QFontMetricsF(self._theme.font(11)).height())

    @property
    def span(self) -> tuple[float, float]:
        """The range of the axis: the interval, 0 and the limits of the claimed range, with a margin."""
        assert self._shape is not None
        limits = [one for one in self._shape.claimed if one is not None]
        values = [0.0, self._shape.low, self._shape.high, *limits]
        low, high = min(values), max(values)
        room = 0.12 * (high - low) or 1.0
        return low - room, high + room

    def position_of(self, value: float) -> float:
        """Return the horizontal position of a value in pixels."""
        low, high = self.span
        edge = self._theme.px(24)
        return edge + (value - low) / (high - low) * (self.width() - 2 * edge)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the claimed range, the axis, 0, and the interval with its mean."""
        shape, theme = self._shape, self._theme
        if shape is None:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        top, height = float(self._line + theme.px(4)), float(theme.px(26))
        middle, (first, last) = top + height / 2, self.span
        left, right = (self.position_of(first if shape.claimed[0] is None else shape.claimed[0]),
                       self.position_of(last if shape.claimed[1] is None else shape.claimed[1]))  # fmt: skip
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("finished", 0.16))
        painter.drawRect(QRectF(left, top, right - left, height))
        painter.setPen(QPen(theme.color("muted", 0.5), 1))
        painter.drawLine(QPointF(self.position_of(first), middle), QPointF(self.position_of(last), middle))
        painter.setPen(QPen(theme.color("muted"), 1))
        painter.drawLine(
            QPointF(self.position_of(0), top - theme.px(2)), QPointF(self.position_of(0), top + height + theme.px(2))
        )
        self._paint_interval(painter, shape, middle)
        self._paint_labels(painter, shape, top + height + theme.px(4))

    def _paint_interval(self, painter: QPainter, shape: IntervalShape, middle: float) -> None:
        theme = self._theme
        ink, half = theme.color("accent"), theme.px(5)
        painter.setPen(QPen(ink, theme.px(3)))
        painter.drawLine(QPointF(self.position_of(shape.low), middle), QPointF(self.position_of(shape.high), middle))
        painter.setPen(QPen(ink, theme.px(2)))
        for value in (shape.low, shape.high):
            painter.drawLine(
                QPointF(self.position_of(value), middle - half), QPointF(self.position_of(value), middle + half)
            )
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(ink)
        painter.drawEllipse(QPointF(self.position_of(shape.mean), middle), half, half)

    def _paint_labels(self, painter: QPainter, shape: IntervalShape, below: float) -> None:
        """Write the mean above; below it 0, and the limits of the claimed range where there is room."""
        theme = self._theme
        painter.setFont(theme.font(11, 600, tabular=True))
        painter.setPen(theme.color("text"))
        self._write(painter, shape.mean, claims.number(shape.mean, shape.digits), 0.0)
        painter.setFont(theme.font(11, tabular=True))
        painter.setPen(theme.color("muted"))
        taken: list[tuple[float, float]] = []
        for value in (0.0, *(one for one in shape.claimed if one is not None)):
            text = "0" if value == 0 else claims.number(value, shape.digits)
            width = QFontMetricsF(painter.font()).horizontalAdvance(text)
            start = self.position_of(value) - width / 2 - 4
            if all(start > end or start + width + 8 < begin for begin, end in taken):
                taken.append((start, start + width + 8))
                self._write(painter, value, text, below)

    def _write(self, painter: QPainter, value: float, text: str, top: float) -> None:
        width = QFontMetricsF(painter.font()).horizontalAdvance(text) + 2
        left = min(max(self.position_of(value) - width / 2, 0.0), self.width() - width)
        painter.drawText(QRectF(left, top, width, self._line), Qt.AlignmentFlag.AlignCenter, text)


class ExampleText(QFrame):
    """One text of an example. `requested`: its run is to be shown."""

    requested = Signal()

    def __init__(self, title: str, value: str, text: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.setProperty("role", "card")
        self.heading = PlainLabel(title, self)
        self.value = set_up(PlainLabel(value, self), role="muted")
        shown = text.strip() or tr("(no text)")
        if len(shown) > MAX_EXAMPLE_LETTERS:
            shown = shown[: MAX_EXAMPLE_LETTERS - 1] + "…"
        self.text = WrappedLabel(shown, self)
        self.text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.button = set_up(
            QPushButton(caption(tr("Open the run")), self), role="quiet",
            accessible_name=tr("Open the run: {name}").format(name=title), clicked=self._on_clicked,
        )  # fmt: skip
        self.button.setAutoDefault(False)
        top = arrange(QHBoxLayout(), self.heading, STRETCH, self.value, spacing=8)
        foot = arrange(QHBoxLayout(), self.button, STRETCH)
        arrange(QVBoxLayout(self), top, self.text, STRETCH, foot, margins=(14, 10, 14, 10), spacing=6)

    @Slot()
    def _on_clicked(self) -> None:
        self.requested.emit()


class ExampleRow(QWidget):
    """A prompt with both texts. `requested(example, is tested)`: the run of one of them is to be shown."""

    requested = Signal(object, bool)

    def __init__(
        self, example: ClaimExample, titles: tuple[str, str], values: tuple[str, str], parent: QWidget
    ) -> None:
        super().__init__(parent)
        self.example = example
        self.prompt = set_up(WrappedLabel(example.prompt, self), role="muted")
        pair = (example.baseline_text, example.tested_text)
        self.texts = [ExampleText(*one, self) for one in zip(titles, values, pair, strict=True)]
        self.texts[0].requested.connect(self._on_baseline)
        self.texts[1].requested.connect(self._on_tested)
        arrange(
            QVBoxLayout(self), self.prompt, arrange(QHBoxLayout(), *((one, 1) for one in self.texts), spacing=12),
            margins=0, spacing=6,
        )  # fmt: skip

    @Slot()
    def _on_baseline(self) -> None:
        self.requested.emit(self.example, False)

    @Slot()
    def _on_tested(self) -> None:
        self.requested.emit(self.example, True)


class VerdictCard(Themed, QFrame):
    """Verdict, reason, values and interval of an outcome."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setProperty("role", "card")
        self.verdict = set_up(PlainLabel("", self), role="brand", name="claimVerdict")
        self.model = set_up(PlainLabel("", self), role="muted")
        self.reason = WrappedLabel("", self)
        self.picture = IntervalPicture(self)
        self.legend = set_up(
            WrappedLabel(tr("Blue: the 95 % interval of the difference. Shaded: where the claim would hold."), self),
            role="muted",
        )
        self.values = set_up(WrappedLabel("", self), role="muted")
        self.amount = set_up(WrappedLabel("", self), role="muted")
        arrange(
            QVBoxLayout(self), arrange(QHBoxLayout(), self.verdict, STRETCH, self.model, spacing=12), self.reason,
            self.picture, self.legend, self.values, self.amount, margins=(16, 14, 16, 14), spacing=8,
        )  # fmt: skip

    def restyle(self, theme: Theme) -> None:
        """Set the size of the verdict."""
        self.verdict.setFont(theme.font(15, 600))
