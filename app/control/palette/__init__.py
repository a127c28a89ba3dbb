"""The command palette: everything that can be done or gone to, found by the beginnings of words.

`sources/` holds a file for each kind of thing; a new file is a new kind, and nothing else has to be touched.
"""
