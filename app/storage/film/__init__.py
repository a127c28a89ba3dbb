"""Write a film to a file frame by frame: one writer per format, each holding at most two frames in memory."""
