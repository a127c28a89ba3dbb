"""The listener: spoken numbers, times and simple commands, written down by a small Whisper."""
