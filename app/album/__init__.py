"""An album: pictures of the program, made without a screen by a script in TOML."""
