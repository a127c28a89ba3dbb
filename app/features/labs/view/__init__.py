"""The windows' contents, a folder for each lab."""
