"""A film of frames in a file: one writer for each kind, none of which holds more than two frames."""
