"""What a model has been given to hear and see, as its first pass takes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import torch

from core.events import MediumRead, Notice
from core.media import MediaFile

if TYPE_CHECKING:
    from transformers.utils.generic import ModelOutput

    from core.models.loaded_model import LoadedModel


@dataclass(eq=False)
class MediaInputs:
    """The sounds and pictures of a request, as numbers."""

    model: LoadedModel
    media: tuple[MediumRead, ...]
    files: tuple[MediaFile, ...]
    inputs: Mapping[str, torch.Tensor]
    """What an encoder is given, or the first pass beside the text; by the names of the module."""
    leading_positions: int = 0
    """Positions of the cache that stand before the text's first token."""
    notices: tuple[Notice, ...] = field(default=())
    image_indices: tuple[int, ...] = ()
    """Places of the prompt whose tokens stand for parts of pictures."""
    prompt_length: int = 0
    """Tokens of the prompt that they are among."""
    position_shift: int = 0
    """How far what follows stands from where it comes: a picture may take fewer places than tokens."""

    @cached_property
    def states(self) -> ModelOutput:
        """What the encoder makes of it, computed once; for a model that has one."""
        read: ModelOutput = self.model.model.get_encoder()(**self.inputs, return_dict=True)
        return read

    def cache_keys(self, ids: list[int]) -> list[int]:
        """The tokens of the cache behind `ids`, for telling one text from another: where a sound or a picture stands,
        numbers below 0 that follow from its file."""
        named = [*([-1] * self.leading_positions), *ids]
        for medium in self.media:
            if medium.place != "encoder":
                mark = -1 - int(medium.digest[:12], 16)
                named[medium.first : medium.last + 1] = [mark] * (medium.last + 1 - medium.first)
        return named

    def index_of_unused_image_token(self, ids: torch.Tensor) -> int | None:
        """Where in ids [1, n] a picture's mark stands for no picture: a model may write one itself. None without."""
        own = {*self.image_indices}
        text = ids[0].tolist() if own else []
        return next(
            (place for place, id in enumerate(text) if id == text[self.image_indices[0]] and place not in own), None
        )

    @property
    def is_encoded(self) -> bool:
        """Whether an encoder reads them, and not the part that writes."""
        return all(medium.place == "encoder" for medium in self.media)

    @property
    def is_inserted(self) -> bool:
        """Whether tokens of the prompt stand for them."""
        return bool(self.image_indices)

    @property
    def required_positions(self) -> int:
        """Positions of the cache behind the last sound or picture: one that holds fewer is of no use."""
        return max((medium.last + 1 for medium in self.media if medium.place != "encoder"), default=0)
