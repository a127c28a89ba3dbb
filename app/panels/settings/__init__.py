"""The parts of the settings window, a subject each; every one says `changed` when something was set in it."""
