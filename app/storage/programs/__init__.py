"""Settings of other programs: read from their files, and written as JSON of llama.cpp's server and of KoboldCpp."""

from app.storage.programs.common import Program, Reading, Writing
from app.storage.programs.known import PROGRAMS, has_settings, notes, program_of, read, readable_programs, written
from app.storage.programs.texts import SUFFIXES, TextSettingsError, is_text_settings, read_text_settings

__all__ = [
    "PROGRAMS", "SUFFIXES", "Program", "Reading", "TextSettingsError", "Writing", "has_settings", "is_text_settings",
    "notes", "program_of", "read", "read_text_settings", "readable_programs", "written",
]  # fmt: skip
