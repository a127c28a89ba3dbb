"""The page for collectives: the data of each device after each step around the ring."""

from __future__ import annotations

import random
from functools import partial

from PySide6.QtCore import QRect, QRectF, QSize, Qt, Slot
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from decodescope.app.features.labs.view.scale.scale_page import ScalePage, horizontal_scroll_area
from decodescope.app.features.labs.view.scale.scrubber import StepScrubber
from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.views.base import Table
from decodescope.app.widgets.accessibility import AccessiblePart, AccessibleWidget, Role
from decodescope.app.widgets.building import STRETCH, arrange, set_up
from decodescope.app.widgets.labels import WrappedLabel
from decodescope.core.labs import scale
from decodescope.resources.language import tr

ROW_HEIGHT, NAME_WIDTH, HEAD_HEIGHT, CELL_WIDTH = 46, 78, 26, 84
"""Pixels at 100 %: height of a row, width of its name, height of the head, minimum width of a cell."""


class RingGrid(Themed, QWidget, AccessibleWidget):
    """Cells that have just been received are outlined."""

    accessible_role = Role.List

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_up(self, name="scaleRing", accessible_name=tr("Data of each device, by part"))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._step: scale.RingStep | None = None

    def show_step(self, step: scale.RingStep) -> None:
        """Show the data of all devices after `step`."""
        self._step = step
        self.updateGeometry()
        self.update()

    @property
    def _device_count(self) -> int:
        return len(self._step.holds) if self._step is not None else 1

    def sizeHint(self) -> QSize:
        """Return a size for all rows, with cells for a few numbers."""
        px = self._theme.px
        return QSize(
            px(NAME_WIDTH) + self._device_count * px(CELL_WIDTH), px(HEAD_HEIGHT) + self._device_count * px(ROW_HEIGHT)
        )

    def minimumSizeHint(self) -> QSize:
        """Return the full size: the widget is scrolled."""
        return self.sizeHint()

    def accessible_parts(self) -> list[AccessiblePart]:
        """Return one part per cell."""
        step = self._step
        return [] if step is None else [
            AccessiblePart(self._cell_sentence(device, part), partial(self._cell_rect, device, part))
            for device, row in enumerate(step.holds) for part in range(len(row))
        ]  # fmt: skip

    def _cell_sentence(self, device: int, part: int) -> str:
        return tr("Device {device}, part {part}: {numbers}.").format(
            device=device + 1, part=part + 1, numbers=self._numbers(device, part) or tr("nothing")
        )

    def _numbers(self, device: int, part: int) -> str:
        chunk = self._step.holds[device][part] if self._step is not None else None
        return "" if chunk is None else "  ".join(f"{value:g}" for value in chunk.values)

    def _cell_rect(self, device: int, part: int) -> QRect:
        px = self._theme.px
        width = (self.width() - px(NAME_WIDTH)) / self._device_count
        return QRectF(
            px(NAME_WIDTH) + part * width, px(HEAD_HEIGHT) + device * px(ROW_HEIGHT), width, px(ROW_HEIGHT)
        ).toAlignedRect()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the names of parts and devices, and the cells."""
        if self._step is None:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        theme, px = self._theme, self._theme.px
        came = {(hand.to, hand.chunk) for hand in self._step.hands}
        for device in range(self._device_count):
            painter.setFont(theme.font(13))
            painter.setPen(theme.color("muted"))
            name = QRectF(0, px(HEAD_HEIGHT) + device * px(ROW_HEIGHT), px(NAME_WIDTH), px(ROW_HEIGHT))
            painter.drawText(name, Qt.AlignmentFlag.AlignVCenter, tr("Device {number}").format(number=device + 1))
            head = QRectF(self._cell_rect(0, device))
            head.moveTop(0)
            head.setHeight(px(HEAD_HEIGHT))
            painter.drawText(head, Qt.AlignmentFlag.AlignCenter, tr("part {number}").format(number=device + 1))
            for part in range(self._device_count):
                self._paint_cell(painter, device, part, (device, part) in came)

    def _paint_cell(self, painter: QPainter, device: int, part: int, is_new: bool) -> None:
        assert self._step is not None
        theme, chunk = self._theme, self._step.holds[device][part]
        cell = QRectF(self._cell_rect(device, part)).adjusted(3, 3, -3, -3)
        fraction = len(chunk.summed) / self._device_count if chunk is not None else 0.0
        painter.setPen(QPen(theme.color("accent"), theme.px(2)) if is_new else QPen(theme.color("line"), 1))
        painter.setBrush(theme.color("kept", 0.5 * fraction) if fraction else theme.color("field"))
        painter.drawRoundedRect(cell, 4, 4)
        painter.setPen(theme.color("text"))
        painter.setFont(theme.font(13, 600 if fraction == 1 else 400, tabular=True))
        words = QFontMetricsF(painter.font()).elidedText(
            self._numbers(device, part), Qt.TextElideMode.ElideRight, cell.width() - theme.px(6)
        )
        painter.drawText(cell, Qt.AlignmentFlag.AlignCenter, words)


BYTES_PER_FLOAT = 4
"""Bytes per number."""


class RingPage(ScalePage):
    """The choice of collective and device count, and a slider over the steps."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("Collective"), parent)
        self.steps: tuple[scale.RingStep, ...] = ()
        titles = scale.RING_TITLES
        self.form.add_choice("ring", tr("Collective"), [(name, tr(title)) for name, title in titles.items()])
        self.form.add_number("ringDevices", tr("Devices"), 4, 2, 8)
        self.form.add_number("numbers", tr("Numbers per part"), 2, 1, 4)
        self.grid = RingGrid()
        self._scroll = horizontal_scroll_area(self.grid)
        self.scrubber = StepScrubber(self)
        self.transfers = set_up(WrappedLabel("", self), name="scaleHands")
        arrange(self.body, self._scroll, self.scrubber, self.transfers, STRETCH)
        self.form.changed.connect(self.refresh)
        self.scrubber.moved.connect(self.wording_changed)
        self.refresh()

    def restyle(self, theme: Theme) -> None:
        self._update_height()

    @Slot()
    def refresh(self) -> None:
        """Restart with the settings; the data are small integers from a fixed seed."""
        count, length = self.form.number_value("ringDevices"), self.form.number_value("numbers")
        generator = random.Random(0)
        tensors = [[float(generator.randint(1, 9)) for _ in range(count * length)] for _ in range(count)]
        self.steps = scale.ring(self.form.choice_value("ring"), tensors)
        self.scrubber.show_steps(len(self.steps), 0)
        self.wording_changed()
        self._update_height()

    @Slot()
    def wording_changed(self) -> None:
        """Show the chosen step and rebuild its texts."""
        step = self.steps[min(self.scrubber.step, len(self.steps) - 1)]
        total_bytes = BYTES_PER_FLOAT * self.form.number_value("ringDevices") * self.form.number_value("numbers")
        self.grid.show_step(step)
        self.set_sentence(scale.explain_ring(self.form.choice_value("ring"), step, total_bytes))
        self.transfers.setText("\n".join(map(scale.explain_hand, step.hands)))

    def export_table(self) -> Table:
        """Return every transfer, with the bytes that its device has sent by then."""
        head = ("step", "device", "to", "part", "adds", "sent_bytes")
        rows = (
            (number, hand.device + 1, hand.to + 1, hand.chunk + 1, hand.adds, step.sent[hand.device])
            for number, step in enumerate(self.steps) for hand in step.hands
        )  # fmt: skip
        return [head, *rows]

    def _update_height(self) -> None:
        bar = self._scroll.horizontalScrollBar().sizeHint().height()
        self._scroll.setFixedHeight(self.grid.sizeHint().height() + bar)
