"""Command palette: every action, setting, view and run, found by word prefixes."""
