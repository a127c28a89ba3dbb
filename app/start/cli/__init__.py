"""The command line: what to set, whether to run at once, whether to leave a picture and go."""

from __future__ import annotations

from app.start.cli.options import CommandLineOptions
from app.start.cli.reading import parse, peek_option

__all__ = ["CommandLineOptions", "parse", "peek_option"]
