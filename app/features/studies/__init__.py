"""Studies in a window of their own: their file as a form, their runs, tables and plots."""
