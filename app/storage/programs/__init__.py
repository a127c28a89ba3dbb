"""Settings of other programs: read from their files, and written as JSON of llama.cpp's server and of KoboldCpp."""

from app.storage.programs.detection import (
    WRITABLE_PROGRAMS,
    export_notes,
    export_settings,
    has_settings,
    import_settings,
    program_of,
    readable_programs,
)
from app.storage.programs.foreign_settings import ForeignProgram, ForeignSettingsReader, ForeignSettingsWriter
from app.storage.programs.texts import SUFFIXES, TextSettingsError, is_text_settings, read_text_settings

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
