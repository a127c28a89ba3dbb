"""Command palette: every action, setting, view and run, found by word prefixes.

`sources/` contains a file for each kind of entry; a new file adds a new kind.
"""
