"""Write the manual page of the command line, decodescope(1), from the program's own parser.

Imports the program: `packaging/installer_parts/linux.py` runs it in the environment that the program is built from.
"""

from __future__ import annotations

import argparse

from decodescope.app.start.cli.commands import COMMANDS
from decodescope.app.start.cli.parser import make_parser

_HEAD = """\
.\\" Made from the program's command line by packaging/installer_parts/manual_page.py.
.TH DECODESCOPE 1 "{date}" "Decodescope {version}" "User Commands"
.SH NAME
decodescope \\- watch a language model choose every token
.SH SYNOPSIS
.B decodescope
.RI [ OPTION ...]
.RI [ FILE.decodescope ]
.br
.B decodescope
.I COMMAND
.RI [ ARGUMENT ...]
.SH DESCRIPTION
Decodescope runs a language model on this computer and shows how each token of its text was chosen: which alternatives
were likely, which filter removed which tokens, and why this one was picked.
Without options it opens a window; with a recorded run it shows that run, which needs no model.
With
.BR \\-\\-screenshot ", " \\-\\-export ", " \\-\\-record\\-demo " or " \\-\\-pictures
it writes files and exits, which needs no screen.
"""
_TAIL = """\
.SH EXIT STATUS
0 on success, 1 if something failed, 2 if the command line is invalid, 130 if interrupted.
.SH FILES
.TP
.I ~/.config/decodescope
settings, presets and plug\\-ins
.TP
.I ~/.local/share/decodescope
recorded runs, chats and downloaded models
.TP
.I /usr/share/doc/decodescope/THIRD_PARTY.txt
libraries that the program contains, and their licences
.SH EXAMPLES
.TP
Draw the window after a run:
.B decodescope \\-\\-model storyteller \\-\\-prompt \\(dqOnce upon a time\\(dq \\-\\-run \\-\\-screenshot window.png
.TP
Print a recording in the terminal:
.B decodescope show run.decodescope
"""


def manual_page(version: str, date: str) -> str:
    """Return the manual page in the format of man(7)."""
    parser = make_parser()
    text = _HEAD.format(date=_escape(date), version=_escape(version))
    for group in parser._action_groups:  # argparse has no public list of them
        actions = [action for action in group._group_actions if action.option_strings]
        if actions:
            text += f".SH {_escape((group.title or 'options').upper())}\n" + "".join(map(_option, actions))
    text += ".SH COMMANDS\nEach has its own \\fB\\-\\-help\\fR.\n"
    for name, (_module, description) in COMMANDS.items():
        text += f".TP\n.B {_escape(name)}\n{_escape(description)}\n"
    return text + _TAIL


def _option(action: argparse.Action) -> str:
    names = ", ".join(f"\\fB{_escape(name)}\\fR" for name in action.option_strings)
    value = ""
    if action.nargs != 0:
        choices = f"{{{','.join(map(str, action.choices))}}}" if action.choices else ""
        value = f" \\fI{_escape(str(action.metavar or choices or action.dest.upper()))}\\fR"
    help_text = (action.help or "") % {"default": action.default, "prog": "decodescope"}
    help_text = help_text.replace("names below", "names: see --help").replace("example below", "example: see --help")
    return f".TP\n{names}{value}\n{_escape(help_text)}\n"


def _escape(text: str) -> str:
    """Return a text that roff prints as it is. A dot or an apostrophe at the start of a line would be a request."""
    lines = " ".join(text.split()).replace("\\", "\\e").replace("-", "\\-")
    for letter, name in {"—": r"\(em", "–": r"\(en", "×": r"\(mu", "“": r"\(lq", "”": r"\(rq", "…": "..."}.items():
        lines = lines.replace(letter, name)
    return f"\\&{lines}" if lines[:1] in (".", "'") else lines
