"""Why a command cannot be used now: what the palette says of it, and what greys its line in the menus."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from app.control.palette.entry import PaletteContext
from app.storage.settings import LARGEST_SCALE, SMALLEST_SCALE
from app.widgets import text_editing
from resources.depth import DEPTHS
from resources.language import tr


def unavailable_reason(name: str, reach: PaletteContext) -> str:
    """A sentence; empty where the command can be used."""
    why_not = _WHY_NOT.get(name)
    return why_not(reach) if why_not is not None else ""


def _escape(reach: PaletteContext) -> str:
    centre = reach.centre
    is_open = not (centre.error_banner.isHidden() and centre.notice_banner.isHidden())
    return (
        ""
        if reach.session.busy or is_open or reach.is_presenting()
        else tr("No run is under way, and no message is open.")
    )


def _back(reach: PaletteContext) -> str:
    if text_editing.can("undo"):
        return ""
    return "" if reach.steps.can_go_back else tr("There is no earlier run, or one is under way.")


def _forward(reach: PaletteContext) -> str:
    if text_editing.can("redo"):
        return ""
    return "" if reach.steps.can_go_forward else tr("There is no later run, or one is under way.")


def _used(reach: PaletteContext) -> str:
    return "" if reach.session.run is not None else tr("Nothing has been run yet.")


def _larger(reach: PaletteContext) -> str:
    return "" if reach.appearance.font_scale < LARGEST_SCALE else tr("The text is as large as it gets.")


def _smaller(reach: PaletteContext) -> str:
    return "" if reach.appearance.font_scale > SMALLEST_SCALE else tr("The text is as small as it gets.")


def _normal(reach: PaletteContext) -> str:
    return "" if reach.appearance.font_scale != 1.0 else tr("The text has that size now.")


def _spoken(depth: str, reach: PaletteContext) -> str:
    return tr("These are the words now.") if reach.appearance.depth == depth else ""


def _said(language: str, reach: PaletteContext) -> str:
    return tr("This is the language now.") if reach.appearance.language == language else ""


def _edit(name: str, _reach: PaletteContext) -> str:
    return "" if text_editing.can(name) else tr("The cursor is in no text field that allows it.")


def _copy(_reach: PaletteContext) -> str:
    return "" if text_editing.can_copy() else tr("Nothing is selected.")


def _branch(reach: PaletteContext) -> str:
    return reach.branch_reason()


_WHY_NOT: Mapping[str, Callable[[PaletteContext], str]] = {
    "branch": _branch,
    "copy": _copy,
    **{name: partial(_edit, name) for name in ("cut", "paste", "select_all")},
    "escape": _escape,
    "previous_run": _back,
    "next_run": _forward,
    "open_used_settings": _used,
    "enlarge_text": _larger,
    "reduce_text": _smaller,
    "reset_text": _normal,
    "speak_as_system": partial(_said, "system"),
    "speak_english": partial(_said, "en"),
    "speak_chinese": partial(_said, "zh_CN"),
    **{f"{depth}_words": partial(_spoken, depth) for depth in DEPTHS},
}
