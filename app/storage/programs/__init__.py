"""Settings of other programs: read from their files, and written as JSON for llama.cpp's server and KoboldCpp."""

from decodescope.app.storage.programs.conversion import (
    WRITABLE_PROGRAMS,
    export_notes,
    export_settings,
    has_settings,
    import_settings,
    program_of,
    readable_programs,
)
from decodescope.app.storage.programs.read_only_formats import (
    SUFFIXES,
    TextSettingsError,
    is_text_settings,
    read_text_settings,
)
from decodescope.app.storage.programs.settings_io import ForeignProgram, ForeignSettingsReader, ForeignSettingsWriter

__all__ = [
    "SUFFIXES",
    "WRITABLE_PROGRAMS",
    "ForeignProgram",
    "ForeignSettingsReader",
    "ForeignSettingsWriter",
    "TextSettingsError",
    "export_notes",
    "export_settings",
    "has_settings",
    "import_settings",
    "is_text_settings",
    "program_of",
    "read_text_settings",
    "readable_programs",
]  # fmt: skip
