"""Toolbar: model, strategy, cache, tours, seed, export, Run."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from PySide6.QtCore import QEvent, QRectF, Qt, Signal, Slot
from PySide6.QtGui import QPainter, QPen, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QSizePolicy, QToolButton, QWidget

from decodescope.app.panels.commands import key_of
from decodescope.app.storage.settings import MAX_SEED
from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets.building import Gap, arrange, set_up
from decodescope.app.widgets.buttons import RunButton
from decodescope.app.widgets.drafter_marks import paint_drafter_mark
from decodescope.app.widgets.icons import IconButton
from decodescope.app.widgets.inputs import SpinBox
from decodescope.app.widgets.picker_combo import SUBTITLE, PickerCombo
from decodescope.app.widgets.picker_items import PickerItem
from decodescope.app.widgets.plain_text import PlainLabel, RichLabel, tooltip
from decodescope.resources.language import join_names, tr

VISIBLE_DIGITS = 5
"""Visible digits. Random seeds have at most this many; the editor scrolls for longer typed ones."""


class SeedBox(Themed, QFrame):
    """Seed number and lock button in one frame."""

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("seedBox")
        self.label = PlainLabel(tr("Seed"), self)
        self.spin = set_up(SpinBox(self), name="seedSpin")
        self.spin.setRange(0, MAX_SEED)
        self.spin.setProperty("plain", True)
        self.spin.setAccessibleName(tr("Seed"))
        self.spin.setToolTip(tr("The same seed and settings give the same tokens"))
        self.label.setBuddy(self.spin)
        self.lock_button = IconButton("unlock", tr("Lock seed"), self, checked_name="lock")
        self.lock_button.setCheckable(True)
        self.spin.valueChanged.connect(self._on_value)
        self.lock_button.toggled.connect(self._on_lock)
        self._generator_state = ""
        arrange(QHBoxLayout(self), self.label, self.spin, self.lock_button, margins=(8, 0, 2, 0), spacing=2)
        self._on_lock()

    @property
    def is_locked(self) -> bool:
        """Whether every run uses the same seed."""
        return self.lock_button.isChecked()

    @property
    def generator_state(self) -> str:
        """State of the random generator for the next run, in place of the seed; empty for a seed."""
        return self._generator_state if self.is_locked else ""

    def set_seed(self, seed: int, generator_state: str = "", *, is_known: bool = True) -> None:
        """Show the seed of a run and lock it, so that it is repeated exactly, unless its random numbers are not known.
        `generator_state` is the state of its generator if it had no seed of its own.
        """
        if is_known:
            self.spin.setValue(seed)
        self._generator_state = generator_state
        self.lock_button.setChecked(is_known)
        self._on_lock()

    def next_seed(self) -> int:
        """Return the seed for a run that starts now, and show it."""
        if not self.is_locked:
            self.spin.setValue(random.SystemRandom().randint(0, 99_999))
        return self.spin.value()

    def restyle(self, theme: Theme) -> None:
        self.setFixedHeight(theme.px(34))
        figures = self.spin.fontMetrics().horizontalAdvance("0" * VISIBLE_DIGITS)
        self.spin.setFixedWidth(figures + theme.space(18))

    @Slot()
    def _on_value(self) -> None:
        self._generator_state = ""
        self._on_lock()

    @Slot()
    def _on_lock(self) -> None:
        if not self.is_locked:
            words = tr("Unlocked: every run uses a new random seed")
        elif self._generator_state:
            words = tr("Locked: every run begins with the generator of the captured run, until the seed is changed")
        else:
            words = tr("Locked: every run uses this seed")
        self.lock_button.setToolTip(tooltip(words))
        self.lock_button.setAccessibleName(words)
        self.changed.emit()
        self.lock_button.setCursor(Qt.CursorShape.PointingHandCursor)


MAX_DRAFTERS = 4
"""Largest number of draft models; more would cost more than they gain."""


class DraftPicker(PickerCombo):
    """Selector for one or several draft models, in the order they were chosen.

    Clicking a row selects only that model; its box, or Space while nothing is searched for, adds or removes it.
    """

    chosenChanged = Signal()

    def __init__(self, name: str, label: str, width: int = 160, parent: QWidget | None = None) -> None:
        super().__init__(name, label, width, parent)
        self._additional: list[str] = []
        self.setToolTip(tr("Small model that drafts tokens ahead. Tick several to merge their drafts."))
        self.activated.connect(self._on_activated)

    @property
    def chosen(self) -> tuple[str, ...]:
        """Names in the order they were chosen; empty if there are none."""
        first = self.currentData()
        return (str(first), *self._additional) if first else ()

    @property
    def has_boxes(self) -> bool:
        """Whether there are several models to choose from."""
        return len(self._usable()) > 1

    def offer(self, items: Iterable[PickerItem], suggested: object = None) -> None:
        """Replace the list. The selection is kept where possible; otherwise `suggested` is selected, or nothing."""
        selection = self.chosen
        self.set_items(items)
        self.note = tr("Tick several to merge their drafts into one tree.") if self.has_boxes else ""
        usable = self._usable()
        kept = [name for name in selection if name in usable]
        if kept:
            self.choose_all(kept)
        else:
            self.setCurrentIndex(self.findData(suggested) if suggested in usable else -1)
            self._additional = []
            self._update_summary()

    def select_data(self, data: object) -> bool:
        """Select only the model with the key `data`; False if it is not listed."""
        self._additional = []
        found = super().select_data(data)
        self._update_summary()
        return found

    def choose_all(self, names: Sequence[str]) -> list[str]:
        """Select these models in this order and return the names that are not listed or cannot draft. The selection is
        kept if none of them can.
        """
        usable = self._usable()
        taken = list(dict.fromkeys(name for name in names if name in usable))[:MAX_DRAFTERS]
        current = self.currentData()
        first = taken[0] if taken else current if current in usable else None
        self.setCurrentIndex(self.findData(first) if first else -1)
        self._additional = taken[1:]
        self._update_summary()
        return [name for name in names if name not in taken]

    def unsupported_reason(self, name: str) -> str | None:
        """Return why a listed model cannot draft: empty if it can, None if it is not listed."""
        row = self.findData(name)
        if row < 0:
            return None
        return "" if name in self._usable() else str(self.itemData(row, SUBTITLE))

    def toggle(self, name: str) -> None:
        """Add a model to the selection or remove it; the last one stays."""
        chosen = list(self.chosen)
        if name in chosen and len(chosen) > 1:
            chosen.remove(name)
        elif name not in chosen and len(chosen) < MAX_DRAFTERS:
            chosen.append(name)
        self.choose_all(chosen)
        if self.is_open:
            self.view().viewport().update()

    def is_marked(self, data: object) -> bool:
        """Return whether the model is among the chosen ones."""
        return data in self.chosen

    def paint_mark(self, painter: QPainter, theme: Theme, rect: QRectF, data: object) -> None:
        """Paint a tick box: empty, or with the drafter's mark of the speculation view."""
        if not self.has_boxes:
            super().paint_mark(painter, theme, rect, data)
        elif data in self.chosen:
            paint_drafter_mark(painter, theme, self.chosen.index(str(data)), rect.adjusted(-2, -2, 2, 2))
        else:
            painter.setPen(QPen(theme.color("faint"), 1.4 * theme.scale))
            painter.setBrush(theme.color("field"))
            painter.drawRoundedRect(rect.adjusted(1, 1, -1, -1), 4, 4)

    def press_mark(self, data: object) -> bool:
        """Add or remove the model; the list stays open."""
        if self.has_boxes and data in self._usable():
            self.toggle(str(data))
        return self.has_boxes

    def _usable(self) -> list[str]:
        return [str(item.data) for item in self.items if item.data and not item.reason]

    def _title(self) -> str:
        if self._additional:
            return tr("{count} drafts, merged").format(count=len(self.chosen))
        return super()._title() if self.currentIndex() >= 0 else tr("No draft chosen")

    @Slot()
    def _on_activated(self) -> None:
        self._additional = []
        self._update_summary()

    def _update_summary(self) -> None:
        titles = [self.itemText(self.findData(name)) for name in self.chosen]
        self.set_subtitle(join_names(titles) if self._additional else None)
        self.chosenChanged.emit()


BRAND_MIN_WIDTH, TOURS_MIN_WIDTH, KEYS_MIN_WIDTH, EXPORT_MIN_WIDTH = 1000, 860, 960, 660
"""Minimum widths at 100 % for showing the program's name, the Tours button, the “Seed” label with the key of Run, and
the export button; tours and export are also in the menus.
"""


class Toolbar(Themed, QFrame):
    """Row of widgets; the window connects them."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_up(self, name="toolbar", role="bar")
        self.brand = set_up(RichLabel(), role="brand", accessible_name="Decodescope")
        self.model = PickerCombo("modelCombo", tr("Model"), 176)
        self.strategy = PickerCombo("strategyCombo", tr("Strategy"), 196)
        self.draft = DraftPicker("draftCombo", tr("Draft model"), 150)
        self.draft.hide()
        self.cache = PickerCombo("cacheCombo", tr("Cache"), 156)
        self.seed = SeedBox()
        self.export_button = IconButton("save", tr("Export… ({key})").format(key=key_of("save_picture")))
        self.export_button.setObjectName("exportButton")
        self.tours_button = set_up(QToolButton(), name="toursButton")
        self.tours_button.setText(tr("Tours"))
        self.tours_button.setToolTip(tr("Guided tours ({key})").format(key=key_of("choose_tour")))
        self.run_button = set_up(RunButton(), name="runButton")
        self._lay_out()

    @property
    def pickers(self) -> tuple[PickerCombo, ...]:
        """Pickers for model, draft model, strategy and cache."""
        return (self.model, self.draft, self.strategy, self.cache)

    def restyle(self, theme: Theme) -> None:
        self.brand.setText(f'Decode<span style="color:{theme.accent}">scope</span>')
        self.tours_button.setFixedHeight(theme.px(34))
        self.export_button.setFixedSize(theme.px(38), theme.px(34))
        self._row.setContentsMargins(theme.space(16), 0, theme.space(16), 0)
        self.setFixedHeight(theme.px(38) + theme.space(14))
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """Hide the name first in a narrow window, then labels that are also in tooltips."""
        width = self.width() / self._theme.scale
        self.brand.setVisible(width >= BRAND_MIN_WIDTH)
        self.seed.label.setVisible(width >= KEYS_MIN_WIDTH)
        self.tours_button.setVisible(width >= TOURS_MIN_WIDTH)
        self.export_button.setVisible(width >= EXPORT_MIN_WIDTH)
        self.run_button.set_compact(width < KEYS_MIN_WIDTH)
        self._distribute_width()

    def event(self, event: QEvent) -> bool:
        """Redistribute the width when a widget's size hint changes."""
        if event.type() == QEvent.Type.LayoutRequest and self.is_themed:
            self._distribute_width()
        return super().event(event)

    def _distribute_width(self) -> None:
        """Distribute the remaining width among the pickers: first what their titles need, then what their second
        lines need, then their usual widths.
        """
        pickers = [picker for picker in self.pickers if not picker.isHidden()]
        others = [
            part
            for part in (self.brand, self.tours_button, self.seed, self.export_button, self.run_button)
            if not part.isHidden()
        ]
        margins = self._row.contentsMargins()
        gaps = self._row.spacing() * (len(pickers) + len(others) + 2)
        room = self.width() - margins.left() - margins.right() - gaps - sum(part.sizeHint().width() for part in others)
        widths = _distribute([(picker.text_width, picker.preferred_width) for picker in pickers], room)
        if sum(widths) > room or any(width < p.text_width for p, width in zip(pickers, widths, strict=True)):
            widths = _distribute([(picker.title_width, picker.text_width) for picker in pickers], room)
        for picker, width in zip(pickers, widths, strict=True):
            picker.set_assigned_width(width)

    def _lay_out(self) -> None:
        row = self._row = arrange(QHBoxLayout(self), self.brand, Gap(8), margins=(16, 0, 16, 0), spacing=8)
        for picker in self.pickers:
            picker.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
            row.addWidget(picker, 0, Qt.AlignmentFlag.AlignVCenter)
        for part in (self.brand, self.seed):
            part.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        row.addStretch(1)
        for pressed in (self.tours_button, self.seed, self.export_button, self.run_button):
            row.addWidget(pressed, 0, Qt.AlignmentFlag.AlignVCenter)


def _distribute(widths: Sequence[tuple[int, int]], available_width: int) -> list[int]:
    """Return a width in pixels for each (minimum, preferred) pair in `available_width`.

    The width that is missing is taken from the largest difference between preferred and minimum first, so that short
    texts stay complete.
    """
    preferred = [most for _least, most in widths]
    minimums = [min(wish) for wish in widths]
    missing = sum(preferred) - available_width
    if missing <= 0:
        return preferred
    if sum(minimums) > available_width:
        return _cut_longest(minimums, available_width)
    slack = [most - least for most, least in zip(preferred, minimums, strict=True)]
    kept = _cut_longest(slack, sum(slack) - missing)
    return [least + more for least, more in zip(minimums, kept, strict=True)]


def _cut_longest(lengths: Sequence[int], available: int) -> list[int]:
    """Return the lengths, of which the longest are cut to one length so that all are at most `available` together."""
    limit, left = 0, max(0, available)
    for n, length in enumerate(sorted(lengths)):
        limit = left // (len(lengths) - n)
        if length >= limit:
            break
        left -= length
    return [min(length, limit) for length in lengths]
