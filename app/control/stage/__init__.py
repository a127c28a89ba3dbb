"""Presentation: the shown run at its own pace, with one view and one sentence at a time."""
