"""Why a command cannot be used now: what the palette says of it, and what greys its line in the menus."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from app.control.palette.entry import PaletteContext
from app.storage.settings import MAX_SCALE, MIN_SCALE
from app.widgets import text_editing
from resources.depth import DEPTHS
from resources.language import tr


def unavailable_reason(name: str, context: PaletteContext) -> str:
    """A sentence; empty where the command can be used."""
    why_not = _REASONS.get(name)
    return why_not(context) if why_not is not None else ""


def _escape(context: PaletteContext) -> str:
    centre = context.centre
    is_open = not (centre.error_banner.isHidden() and centre.notice_banner.isHidden())
    return (
        ""
        if context.session.busy or is_open or context.is_presenting()
        else tr("No run is under way, and no message is open.")
    )


def _back(context: PaletteContext) -> str:
    if text_editing.can_apply("undo"):
        return ""
    return "" if context.run_navigation.can_go_back else tr("There is no earlier run, or one is under way.")


def _forward(context: PaletteContext) -> str:
    if text_editing.can_apply("redo"):
        return ""
    return "" if context.run_navigation.can_go_forward else tr("There is no later run, or one is under way.")


def _used_settings(context: PaletteContext) -> str:
    return "" if context.session.run is not None else tr("Nothing has been run yet.")


def _larger(context: PaletteContext) -> str:
    return "" if context.appearance.font_scale < MAX_SCALE else tr("The text is as large as it gets.")


def _smaller(context: PaletteContext) -> str:
    return "" if context.appearance.font_scale > MIN_SCALE else tr("The text is as small as it gets.")


def _normal(context: PaletteContext) -> str:
    return "" if context.appearance.font_scale != 1.0 else tr("The text has that size now.")


def _depth(depth: str, context: PaletteContext) -> str:
    return tr("These are the words now.") if context.appearance.depth == depth else ""


def _language(language: str, context: PaletteContext) -> str:
    return tr("This is the language now.") if context.appearance.language == language else ""


def _edit(name: str, _context: PaletteContext) -> str:
    return "" if text_editing.can_apply(name) else tr("The cursor is in no text field that allows it.")


def _copy(_context: PaletteContext) -> str:
    return "" if text_editing.can_copy() else tr("Nothing is selected.")


def _branch(context: PaletteContext) -> str:
    return context.branch_reason()


_REASONS: Mapping[str, Callable[[PaletteContext], str]] = {
    "branch": _branch,
    "copy": _copy,
    **{name: partial(_edit, name) for name in ("cut", "paste", "select_all")},
    "escape": _escape,
    "previous_run": _back,
    "next_run": _forward,
    "open_used_settings": _used_settings,
    "enlarge_text": _larger,
    "reduce_text": _smaller,
    "reset_text": _normal,
    "speak_as_system": partial(_language, "system"),
    "speak_english": partial(_language, "en"),
    "speak_chinese": partial(_language, "zh_CN"),
    **{f"{depth}_words": partial(_depth, depth) for depth in DEPTHS},
}
