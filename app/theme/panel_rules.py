"""Style rules of the panels, on top of the theme's own sheet."""

from __future__ import annotations

from app.theme.theme import Theme


def panel_stylesheet(theme: Theme) -> str:
    """One sheet for all panels: far quicker than a sheet for each widget."""
    return _settings(theme) + _buttons(theme) + _lists(theme)


def _settings(theme: Theme) -> str:
    """Editors of settings, and what stands beside them."""
    px = theme.px
    return f"""
QAbstractSpinBox[plain="true"]::up-button, QAbstractSpinBox[plain="true"]::down-button {{ width: 0; border: 0; }}
QAbstractSpinBox[plain="true"]::up-arrow, QAbstractSpinBox[plain="true"]::down-arrow {{
    image: none; width: 0; height: 0;
}}
QAbstractSpinBox[plain="true"] {{ padding: 2px 4px; }}
ValueSlider {{ min-height: {px(14)}px; max-height: {px(14)}px; }}
#usedSettings[changed="true"] {{ color: {theme.accent}; }}
#seedBox {{ border: 1px solid {theme.line}; border-radius: {px(8)}px; background: transparent; }}
#seedBox QLabel {{ color: {theme.muted}; }}
#seedSpin {{ border: 1px solid transparent; background: transparent; padding: 1px; }}
#seedSpin:focus {{ border: 1px solid {theme.accent}; border-radius: {px(5)}px; }}
#usedSettings {{ color: {theme.muted}; font-size: {theme.font_pixels(12)}px; padding: 1px {px(6)}px; }}
#resetButton, #openPreset, #moreButton {{ font-size: {theme.font_pixels(12)}px; padding: 1px {px(6)}px; }}
"""


def _buttons(theme: Theme) -> str:
    """Buttons, tabs and what is switched by them."""
    px = theme.px
    return f"""
QPushButton[role="chip"] {{ border-radius: {theme.space(12)}px; }}
#exportButton, #toursButton {{ border: 1px solid {theme.line}; border-radius: {px(8)}px; }}
#exportButton:hover, #toursButton:hover {{ background: {theme.hover}; }}
#exportButton:focus, #toursButton:focus {{ border: 1px solid {theme.accent}; }}
#scoreButton {{
    border: 1px solid {theme.line}; border-radius: {theme.space(12)}px;
    padding: {px(2)}px {px(22)}px {px(2)}px {px(8)}px; color: {theme.accent};
    font-size: {theme.font_pixels(12)}px; min-height: {px(17)}px;
}}
#scoreButton:hover {{ background: {theme.hover}; }}
#scoreButton:focus {{ border: 1px solid {theme.accent}; }}
#scoreButton::menu-button {{ border: 0; width: {px(20)}px; }}
#moreButton, #openPreset {{ color: {theme.muted}; }}
#toursButton {{ padding: 0 {px(10)}px; }}
#colourButton, #whitespaceButton {{ padding: {px(4)}px 1px; }}
#moreViews {{ padding: 2px {px(6)}px; }}
#toolStack {{ background: transparent; }}
IconButton {{ padding: {px(4)}px; }}
#statusLine IconButton {{ padding: 1px {px(5)}px; }}
IconButton:checked:!hover {{ background: transparent; }}
IconButton:hover {{ background: {theme.hover}; }}
Segmented QPushButton[role="quiet"] {{
    color: {theme.muted}; font-size: {theme.font_pixels(12)}px; padding: 2px {px(6)}px;
}}
Segmented QPushButton[role="quiet"]:checked {{ color: {theme.text}; background: transparent; font-weight: 600; }}
Segmented QPushButton[role="quiet"]:disabled {{ color: {theme.faint}; }}
"""


def _lists(theme: Theme) -> str:
    """Cards, lists, headings."""
    px = theme.px
    return f"""
QPushButton[role="tour"] {{
    text-align: left; background: {theme.panel}; border: 1px solid {theme.line}; border-radius: {theme.space(8)}px;
}}
QPushButton[role="tour"]:hover {{ background: {theme.hover}; }}
QPushButton[role="tour"]:focus {{ border: 2px solid {theme.accent}; }}
QLabel[role="tourTitle"] {{ font-weight: 600; }}
QLabel[role="spoken"] {{ font-size: {px(17)}px; }}
QLabel[role="bannerTitle"] {{ font-weight: 600; }}
#historyList {{ border: 0; padding: 0; }}
#historyView QStackedWidget {{ background: transparent; }}
TableDialog QScrollArea {{ border: 1px solid transparent; border-radius: {px(5)}px; }}
TableDialog QScrollArea:focus {{ border: 1px solid {theme.accent}; }}
"""
