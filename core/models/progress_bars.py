"""Progress bars that transformers and huggingface_hub print while they load a model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars
from transformers.utils import logging


@contextmanager
def library_progress_bars(shown: bool) -> Iterator[None]:
    """Hide the bars in the block unless they are to be shown; their settings are restored at the end."""
    if shown:
        yield
        return
    was_shown, were_disabled = logging.is_progress_bar_enabled(), are_progress_bars_disabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if was_shown:
            logging.enable_progress_bar()
        if were_disabled:
            disable_progress_bars()
        elif are_progress_bars_disabled():
            enable_progress_bars()
