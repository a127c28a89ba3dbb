"""The command line: what to set, whether to run at once, whether to leave a picture and go."""

from __future__ import annotations

from app.start.cli.parser import CommandLineOptions, parse, peek_option

__all__ = ["CommandLineOptions", "parse", "peek_option"]
