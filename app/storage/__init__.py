"""Persistence on disk: settings, chats, presets and recordings; and the bundled examples."""
