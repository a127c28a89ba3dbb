"""The Qt application: displays the core's events and sends it requests."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from decodescope.app.session.engine import Engine
    from decodescope.app.window.main_window import MainWindow
    from decodescope.app.window.window_parts import WindowParts

if __name__ != "decodescope.app":  # imported by the name of its folder in a checkout
    sys.modules[__name__] = importlib.import_module("decodescope.app")


def build_window(
    config_dir: str | Path | None = None,
    engine: Engine | None = None,
    assembled: bool = True,
    language: str = "",
) -> MainWindow:
    """Create the main window without showing it; a QApplication must exist.

    `config_dir` is the settings folder, by default the user's. `engine` replaces the core in tests. With
    `assembled=False` the window is an empty frame, quick to show, until its `assemble` is called. `language` (one of
    the settings' choices) overrides the saved one for this start.
    """
    from decodescope.app.import_hook import remove_pyside_import_hook

    remove_pyside_import_hook()
    from decodescope.app.storage.settings_file import SettingsStore
    from decodescope.app.theme.fonts import set_application_font
    from decodescope.app.window.main_window import MainWindow

    def assemble(window: MainWindow) -> WindowParts:
        from decodescope.app.session.garbage_collection import collection_paused

        set_application_font()
        with collection_paused():
            from decodescope.app.window.assembly import assemble  # importing the panels and views takes a while

            return assemble(window, store, engine, language)

    store = SettingsStore(Path(config_dir)) if config_dir is not None else SettingsStore()
    window = MainWindow(store, assemble, language)
    if assembled:
        window.assemble()
        window.parts.centre.create_all_views()
        window.parts.history_panel.ensure_view()
        window.parts.setup.create_all_rows()
        window.parts.inspector.area.create_token_page()
    return window
