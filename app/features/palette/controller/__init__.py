"""Controller of the command palette. `sources/` contains a file for each kind of entry; a new file adds a new kind."""
