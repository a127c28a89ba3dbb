"""What is kept on the disk: settings, the chat, presets; and the examples that ship."""
