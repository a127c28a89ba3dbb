"""The Qt application: displays the core's events and sends it requests."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import decodescope  # noqa: F401  # raises ImportError where another package hides `core` or `resources`

if TYPE_CHECKING:
    from app.session.engine import Engine
    from app.window.main_window import MainWindow
    from app.window.window_parts import WindowParts


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
    from app.import_hook import remove_pyside_import_hook

    remove_pyside_import_hook()
    from app.storage.settings_file import SettingsStore
    from app.window.main_window import MainWindow

    def assemble(window: MainWindow) -> WindowParts:
        from app.session.garbage_collection import collection_paused

        with collection_paused():
            from app.window.assembly import assemble  # importing the panels and views takes a while

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
