"""Settings of other programs, read from and written to their JSON: llama.cpp's server, KoboldCpp."""

from app.storage.programs.common import Program, Reading, Writing
from app.storage.programs.known import PROGRAMS, notes, program_of, read, written

__all__ = ["PROGRAMS", "Program", "Reading", "Writing", "notes", "program_of", "read", "written"]
