"""Parse the command line."""

from __future__ import annotations

from decodescope.app.start.cli.parser import CommandLineOptions, parse, peek_option

__all__ = ["CommandLineOptions", "parse", "peek_option"]
