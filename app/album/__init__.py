"""An album: pictures of the program, rendered without a screen from a TOML script."""
