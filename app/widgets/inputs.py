"""Input controls that ignore the wheel, which scrolls the page around them.

`app` does not use the Qt classes directly; `tests/app/test_inputs.py` checks that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QPaintEvent, QWheelEvent
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QComboBox,
    QDoubleSpinBox,
    QLineEdit,
    QScrollArea,
    QSlider,
    QSpinBox,
    QTabBar,
    QWidget,
)

if TYPE_CHECKING:
    from PySide6.QtWidgets import QAbstractItemView


if TYPE_CHECKING:
    _Base = QWidget
else:  # Qt classes cannot be combined: the input control is the second base of the classes below
    _Base = object


class _IgnoresWheel(_Base):
    """Leaves the wheel, and the focus that it would take, to the page."""

    def __init__(self, *arguments: Any, **properties: Any) -> None:
        super().__init__(*arguments, **properties)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


class ComboBox(_IgnoresWheel, QComboBox):
    """A combo box that ignores the wheel, and ends a text that is too long with an ellipsis; Qt cuts it off."""

    def paintEvent(self, event: QPaintEvent) -> None:
        needed = self.fontMetrics().horizontalAdvance(self.currentText())
        if self.isEditable() or needed + 4 * self.height() < self.width() or not self._paint_cut(needed):
            super().paintEvent(event)

    def _paint_cut(self, needed: int) -> bool:
        """Paint the box with a shortened text if there is not as much room as needed, in pixels."""
        from PySide6.QtWidgets import QStyle, QStyleOptionComboBox, QStylePainter  # not needed at the start

        option = QStyleOptionComboBox()
        self.initStyleOption(option)
        field = self.style().subControlRect(
            QStyle.ComplexControl.CC_ComboBox, option, QStyle.SubControl.SC_ComboBoxEditField, self
        )
        icon = 0 if option.currentIcon.isNull() else option.iconSize.width() + 4
        if needed + icon <= field.width():
            return False
        option.currentText = self.fontMetrics().elidedText(
            option.currentText, Qt.TextElideMode.ElideRight, field.width() - icon
        )
        painter = QStylePainter(self)
        painter.drawComplexControl(QStyle.ComplexControl.CC_ComboBox, option)
        painter.drawControl(QStyle.ControlElement.CE_ComboBoxLabel, option)
        return True


class _IndentsNumber(_Base):
    """Begins its number where the text of a combo box begins; style sheets do not move the text of a spin box.

    A box with the property `plain` is drawn without a frame of its own, and is not indented.
    """

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self._number_edit().setTextMargins(self._indent(), 0, 0, 0)

    def sizeHint(self) -> QSize:
        return super().sizeHint() + QSize(self._indent(), 0)

    def minimumSizeHint(self) -> QSize:
        return super().minimumSizeHint() + QSize(self._indent(), 0)

    def _indent(self) -> int:
        return 0 if self.property("plain") else self.fontMetrics().height() * _INDENT_PIXELS // _LINE_PIXELS

    def _number_edit(self) -> QLineEdit:
        return cast(QAbstractSpinBox, self).lineEdit()


_INDENT_PIXELS, _LINE_PIXELS = 7, 16
"""The indent of a number, and the height of a line, in text of the usual size."""


class SpinBox(_IgnoresWheel, _IndentsNumber, QSpinBox):
    """A spin box that ignores the wheel."""


class DoubleSpinBox(_IgnoresWheel, _IndentsNumber, QDoubleSpinBox):
    """A decimal spin box that ignores the wheel."""


class Slider(_IgnoresWheel, QSlider):
    """A slider that ignores the wheel."""


class TabBar(QTabBar):
    """A tab bar that ignores the wheel."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


class ScrollArea(QScrollArea):
    """A scroll area that leaves Ctrl+wheel to the window, which changes the text size."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        if changes_text_size(event):
            event.ignore()
        else:
            super().wheelEvent(event)


def changes_text_size(event: QWheelEvent) -> bool:
    """Return whether a wheel event changes the text size."""
    return bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)


class LazyComboBox(ComboBox):
    """Creates its list view lazily.

    A list consists of eleven hidden widgets, which Qt creates with the first style or choice of the box. Here they get
    no style and no settings until the list is first used.
    """

    _has_list = False

    @property
    def is_open(self) -> bool:
        """Whether the list is open."""
        return self._has_list and self.view().isVisible()

    def prepare_list(self) -> None:
        """Prepare the list before it is first shown."""

    def view(self) -> QAbstractItemView:
        """Return the list, created on first use."""
        if not self._has_list:
            self._has_list = True
            self.prepare_list()
        return super().view()

    def showPopup(self) -> None:
        self.view()
        super().showPopup()

    def changeEvent(self, event: QEvent) -> None:
        """Pass style changes to the list only if it exists."""
        if self._has_list or event.type() != QEvent.Type.StyleChange:
            super().changeEvent(event)
        else:
            QWidget.changeEvent(self, event)
