"""The rooms beside the text; each is imported and made when it is first asked for."""

from __future__ import annotations

from PySide6.QtCore import Qt, SignalInstance
from PySide6.QtWidgets import QWidget

from app.control.scale_run import ScaleRun
from app.theme.theme import Theme
from app.views.labs.scale.window import ScaleView


def open_scale(over: QWidget, theme: Theme, themed: SignalInstance, worded: SignalInstance) -> ScaleView:
    """The Scale lab above a window, the one that is open where there is one; it follows that window's theme and
    depth of words."""
    found = over.findChild(ScaleView, options=Qt.FindChildOption.FindDirectChildrenOnly)
    if isinstance(found, ScaleView):
        view = found
    else:
        view = ScaleView(over)
        ScaleRun(view.run)
        view.set_theme(theme)
        themed.connect(view.set_theme)
        worded.connect(view.words_changed)
    view.show()
    view.raise_()
    view.activateWindow()
    return view
