"""Widgets with colours and sizes of a theme, and the one way in which they receive it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QWidget
from shiboken6 import isValid

if TYPE_CHECKING:
    from decodescope.app.theme.theme import Theme

    _Widget = QWidget
else:
    _Widget = object  # a mixin: PySide allows one Qt class per widget


class _DefaultTheme:
    """The light theme. Imported on first use, because the window's frame is shown before anything needs colours."""

    def __get__(self, widget: object, owner: type) -> Theme:
        from decodescope.app.theme.theme import theme_for

        return theme_for("light")


class Themed(_Widget):
    """Mixin, before the Qt class, for a widget that paints in colours of the theme or has sizes from it."""

    _theme = _DefaultTheme()

    @property
    def current_theme(self) -> Theme:
        """The theme that was applied last."""
        return self._theme

    @property
    def is_themed(self) -> bool:
        """Whether a theme was applied; until then the default is used."""
        return "_theme" in vars(self)

    def set_theme(self, theme: Theme) -> None:
        """Apply a theme to this widget and to everything inside it."""
        apply_theme(self, theme)

    def restyle(self, theme: Theme) -> None:
        """Set the sizes, fonts and style sheets that depend on the theme; the widgets inside have it already."""
        self.updateGeometry()
        self.update()


def apply_theme(root: QWidget, theme: Theme) -> None:
    """Apply a theme to `root` and everything inside it, dialogs included; children first, as sizes depend on them."""
    for part in (*reversed(root.findChildren(QWidget)), root):
        if isinstance(part, Themed) and isValid(part):  # a parent may replace its children meanwhile
            part._theme = theme
            part.restyle(theme)


def surrounding_theme(widget: QWidget | None) -> Theme | None:
    """Return the theme of `widget`, or of the nearest widget around it that has one."""
    while widget is not None:
        if isinstance(widget, Themed) and widget.is_themed:
            return widget.current_theme
        widget = widget.parentWidget()
    return None


def inherit_theme(part: QWidget) -> None:
    """Apply the theme of the surroundings to a widget that was created after they received it."""
    theme = surrounding_theme(part.parentWidget())
    if theme is not None:
        apply_theme(part, theme)
