"""Settings of other programs: read from their files, and written as JSON of llama.cpp's server and of KoboldCpp."""

from app.storage.programs.detection import PROGRAMS, has_settings, notes, program_of, read, readable_programs, written
from app.storage.programs.foreign_settings import ForeignSettingsReader, ForeignSettingsWriter, Program
from app.storage.programs.texts import SUFFIXES, TextSettingsError, is_text_settings, read_text_settings

__all__ = [
    "PROGRAMS",
    "SUFFIXES",
    "ForeignSettingsReader",
    "ForeignSettingsWriter",
    "Program",
    "TextSettingsError",
    "has_settings",
    "is_text_settings",
    "notes",
    "program_of",
    "read",
    "read_text_settings",
    "readable_programs",
    "written",
]  # fmt: skip
