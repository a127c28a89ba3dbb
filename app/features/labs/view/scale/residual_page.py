"""The ZeRO-R page: the memory of a training step with and without it, block by block over time."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QRect, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from decodescope.app.features.labs.state import ScaleRequest
from decodescope.app.features.labs.view.scale.run_page import ProcessPage
from decodescope.app.theme.theme import theme_for
from decodescope.app.theme.themed import Themed
from decodescope.app.views.base import Table
from decodescope.app.widgets.accessibility import AccessiblePart, AccessibleWidget, Role
from decodescope.app.widgets.building import set_up
from decodescope.app.widgets.labels import WrappedLabel
from decodescope.app.widgets.plain_text import tooltip
from decodescope.core import catalog
from decodescope.core.labs import scale
from decodescope.resources.language import mark, tr

MAP_HEIGHT, TITLE_HEIGHT, LEGEND_HEIGHT = 190, 22, 22
"""Heights in pixels at 100 %: of the map, its title, and its legend."""
BLOCK_COLORS = {
    "checkpoint": ("finished", 0.85),
    "gradient": ("best", 0.85),
    "buffer": ("refused", 0.85),
    "other": ("kept", 0.45),
}
"""Colour and opacity of each kind of block."""


class MemoryMap(Themed, QWidget, AccessibleWidget):
    """Memory blocks below a title; the upper edge is the byte `top`."""

    accessible_role = Role.List

    def __init__(self, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_up(self, name="scaleMap", accessible_name=title)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._theme, self._title = theme_for("light"), title
        self._arena = scale.Arena((), 0, 0, 0)
        self._top = 1

    def show_arena(self, arena: scale.Arena, top: int) -> None:
        """Show these blocks; the full height is `top` bytes."""
        self._arena, self._top = arena, max(1, top)
        set_up(self, description=self._summary, tooltip=tooltip(self._summary))
        self.update()

    def accessible_parts(self) -> list[AccessiblePart]:
        """Return the peak memory of each kind."""
        return [AccessiblePart(words, partial(self._map_rect)) for words in self._kind_sentences]

    def sizeHint(self) -> QSize:
        """Return the preferred size."""
        px = self._theme.px
        return QSize(px(420), px(TITLE_HEIGHT) + px(MAP_HEIGHT) + px(LEGEND_HEIGHT))

    def minimumSizeHint(self) -> QSize:
        """Return the minimum size."""
        return QSize(self._theme.px(200), self.sizeHint().height())

    @property
    def _summary(self) -> str:
        arena, size = self._arena, scale.decimal_bytes
        return tr("{title}: {live} at the peak, in {top}; gaps {gaps}").format(
            title=self._title, live=size(arena.live), top=size(arena.top), gaps=size(arena.gaps)
        )

    @property
    def _kind_sentences(self) -> list[str]:
        peaks = self._arena.most
        return [
            f"{words}: {scale.decimal_bytes(peaks[kind])}" for kind, words in _block_titles().items() if peaks.get(kind)
        ]

    def _map_rect(self) -> QRect:
        px = self._theme.px
        return QRect(0, px(TITLE_HEIGHT), self.width(), px(MAP_HEIGHT))

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the title, the blocks, and the legend."""
        painter, theme = QPainter(self), self._theme
        painter.setFont(theme.font(13, tabular=True))
        painter.setPen(theme.color("text"))
        metrics = QFontMetricsF(painter.font())
        words = metrics.elidedText(self._summary, Qt.TextElideMode.ElideRight, self.width())
        painter.drawText(QRectF(0, 0, self.width(), theme.px(TITLE_HEIGHT)), Qt.AlignmentFlag.AlignVCenter, words)
        ground = QRectF(self._map_rect())
        painter.fillRect(ground, theme.color("field"))
        across, up = ground.width() / max(1, self._arena.end), ground.height() / self._top
        for each in self._arena.placed:
            block = each.block
            top = ground.bottom() - (each.offset + block.bytes) * up
            width = max((block.stop - block.start) * across, 1.0 if block.kind == "other" else theme.px(3))
            box = QRectF(min(block.start * across, ground.right() - width), top, width, block.bytes * up)
            painter.fillRect(box, theme.color(*BLOCK_COLORS[block.kind]))
        self._paint_legend(painter, ground.bottom() + theme.px(3))

    def _paint_legend(self, painter: QPainter, top: float) -> None:
        theme, x = self._theme, 0.0
        painter.setFont(theme.font(12))
        painter.setPen(theme.color("muted"))
        for kind, words in _block_titles().items():
            painter.fillRect(QRectF(x, top + theme.px(5), theme.px(10), theme.px(10)), theme.color(*BLOCK_COLORS[kind]))
            width = QFontMetricsF(painter.font()).horizontalAdvance(words)
            place = QRectF(x + theme.px(15), top, width + 2, theme.px(20))
            painter.drawText(place, Qt.AlignmentFlag.AlignVCenter, words)
            x += width + theme.px(33)


def _block_titles() -> dict[str, str]:
    return {
        "checkpoint": tr("checkpoints"), "gradient": tr("gradients"), "buffer": tr("buffer"),
        "other": tr("temporary"),
    }  # fmt: skip


_INTRODUCTION = mark(
    "Besides the model's states, a training step uses temporary memory. Processes that share a model "
    "run the same step twice: normally, and with ZeRO-R, which shards the activation checkpoints and "
    "stores them in a separate area."
)


class ResidualPage(ProcessPage):
    """Two memory maps of one process, one above the other on the same scale."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("What to run"), 2, parent)
        models = [(entry.name, entry.title) for entry in catalog.bundled()]
        self.form.add_choice("model", tr("Model"), models)
        self.form.add_number("processes", tr("Processes"), 2, 1, scale.MAX_PROCESSES)
        self.without_zero_r, self.with_zero_r = (
            MemoryMap(tr("Without ZeRO-R"), self),
            MemoryMap(tr("With ZeRO-R"), self),
        )
        self.key = WrappedLabel(
            tr(
                "Time runs from left to right, memory addresses from bottom to top. Empty space below a block is a gap."
            ),
            self,
        )
        self.key.setProperty("role", "muted")
        self.lay_out("scaleResidual", self.without_zero_r, self.with_zero_r, self.key)

    @property
    def measurement(self) -> scale.Residual | None:
        """The result, if there is one."""
        return self.result if isinstance(self.result, scale.Residual) else None

    def sentence_text(self) -> str:
        """Return the introduction, or the result in words."""
        return tr(_INTRODUCTION) if self.measurement is None else scale.explain_residual(self.measurement)

    def show_result(self) -> None:
        """Show both maps."""
        found = self.measurement
        for shown in (self.without_zero_r, self.with_zero_r, self.key):
            shown.setVisible(found is not None)
        if found is not None:
            top = max(arena.top for arena in found.arenas)
            for shown, arena in zip((self.without_zero_r, self.with_zero_r), found.arenas, strict=True):
                shown.show_arena(arena, top)

    def export_table(self) -> Table:
        """Return one row per process and step: without ZeRO-R, then with it."""
        found = self.measurement
        if found is None:
            return ()
        head = ("zero_r", "process", "checkpoints", "buffer", "sent")
        rows = (
            (is_on, number, one.checkpoints, one.buffer, one.sent)
            for is_on, ranks in ((False, found.without), (True, found.kept)) for number, one in enumerate(ranks, 1)
        )  # fmt: skip
        return [head, *rows]

    def current_request(self) -> ScaleRequest:
        """Return the configured request."""
        return ScaleRequest(self.form.choice_value("model"), scale.ZERO_R, self.form.number_value("processes"))
