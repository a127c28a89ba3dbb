"""Start-up: from the command line to a window, a picture or a film."""
