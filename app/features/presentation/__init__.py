"""Presentation: the shown run at its own pace for an audience, and films of it."""
