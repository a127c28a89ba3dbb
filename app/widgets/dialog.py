"""Base classes of dialogs: they fit on the screen, have a Tab order by position, and can scroll their contents."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QDialog, QFrame, QScrollArea, QVBoxLayout, QWidget

from decodescope.app.theme.themed import Themed, inherit_theme
from decodescope.app.widgets.building import arrange
from decodescope.app.widgets.inputs import ScrollArea
from decodescope.app.widgets.screen import available_rect
from decodescope.app.widgets.tab_order import TabOrder

WINDOW_FRAME = QSize(16, 40)
"""Approximate size of a window's frame on the desktop."""


class BaseDialog(Themed, QDialog):
    """Base class of the dialogs: the Tab order goes line by line and wraps around, and the theme is the window's."""

    def __init__(self, parent: QWidget | None = None, name: str = "", title: str = "") -> None:
        """A dialog with a name is deleted when it is closed."""
        super().__init__(parent)
        if name:
            self.setObjectName(name)
            self.setWindowTitle(title)
            self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._order = TabOrder(self, self.tab_panels)

    def tab_panels(self) -> Sequence[QWidget]:
        """Return the parts that Tab goes through one after the other; a dialog with columns overrides it."""
        return (self,)

    def showEvent(self, event: QShowEvent) -> None:
        """Limit the dialog to the screen before it is shown; larger contents scroll."""
        inherit_theme(self)
        layout = self.layout()
        if layout is not None:
            layout.activate()  # drop the size hint from before the labels had their width
        room = available_rect(self).size() - WINDOW_FRAME
        self.resize(self.size().boundedTo(room))
        if self.focusWidget() is None:  # a scrolled page comes after the controls
            first = next((part for part in self._order.tab_stops() if not isinstance(part, QScrollArea)), None)
            if first is not None:
                first.setFocus(Qt.FocusReason.OtherFocusReason)
        super().showEvent(event)

    def focusNextPrevChild(self, forwards: bool) -> bool:
        """Move the focus with Tab and Shift+Tab."""
        return self._order.move_focus(forwards)


def page_scroll_area(page: QWidget, title: str, parent: QWidget | None = None) -> QScrollArea:
    """Return a frameless area that scrolls a page vertically where the window is lower than the page; `title` is its
    accessible name.
    """
    area = ScrollArea(parent)
    area.setWidgetResizable(True)
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    area.setAccessibleName(title)
    area.setWidget(page)
    return area


WIDTH_IN_DIGITS = 54
"""Width of the contents in digits of the dialog's font."""
RESERVED_WIDTH, RESERVED_HEIGHT, MIN_HEIGHT = 32, 160, 120
"""Pixels of the screen reserved for the dialog's frame and buttons, and the minimum height of the contents."""


class FittedScrollArea(QScrollArea):
    """A scroll area as large as its contents, if the screen has room."""

    def __init__(self) -> None:
        super().__init__(widgetResizable=True)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)

    def sizeHint(self) -> QSize:
        content = self.widget()
        if content is None:
            return super().sizeHint()
        room = available_rect(self).height() - RESERVED_HEIGHT
        width = max(
            content.minimumSizeHint().width(), round(WIDTH_IN_DIGITS * self.fontMetrics().horizontalAdvance("0"))
        )
        height = max(content.heightForWidth(width), content.minimumSizeHint().height())
        bar = self.verticalScrollBar().sizeHint().width() if height > room else 0
        return QSize(width + bar, min(height, room))

    def minimumSizeHint(self) -> QSize:
        content = self.widget()
        width = content.minimumSizeHint().width() if content is not None else 0
        return QSize(min(width, available_rect(self).width() - RESERVED_WIDTH), MIN_HEIGHT)


class ScrolledDialog(BaseDialog):
    """A dialog with scrolled contents and buttons that stay visible below."""

    def __init__(self, parent: QWidget | None = None, name: str = "", title: str = "") -> None:
        super().__init__(parent, name, title)
        self._scroll = FittedScrollArea()

    def set_content(self, content: QWidget, buttons: QWidget) -> None:
        """Lay out the contents and the buttons."""
        self._scroll.setWidget(content)
        buttons.setContentsMargins(20, 8, 20, 16)
        arrange(QVBoxLayout(self), (self._scroll, 1), buttons, margins=0, spacing=0)

    def fit_content(self) -> None:
        """Make the window as large as its contents, which have changed, if the screen has room."""
        content = self._scroll.widget()
        if not self.isVisible() or content is None:
            return
        for part in (*reversed(content.findChildren(QWidget)), content, self):  # from inside to outside
            inner = part.layout()
            if inner is not None:
                inner.activate()
        self._scroll.updateGeometry()
        self.resize(self.sizeHint().boundedTo(available_rect(self).size() - WINDOW_FRAME))

    def showEvent(self, event: QShowEvent) -> None:
        """Use the full available height; Qt alone limits a window to two thirds of the screen."""
        inherit_theme(self)
        self.resize(self.sizeHint())
        self.fit_content()  # the first size gave labels the width that decides their height
        super().showEvent(event)
