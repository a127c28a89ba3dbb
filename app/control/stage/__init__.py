"""Presenting: the shown run at its own pace, one view and one sentence at a time."""
