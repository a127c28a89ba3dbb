"""What is asked of transformers' modules and of tokenizers; for annotations alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from typing import Self

    import torch
    from transformers import PreTrainedModel

    class Network(PreTrainedModel):
        """A model with a language-model head, and what is used here of transformers' `GenerationMixin`."""

        @classmethod
        def _supports_default_dynamic_cache(cls) -> bool: ...

        def eval(self) -> Self: ...

        def get_output_embeddings(self) -> torch.nn.Linear: ...

        def get_decoder(self) -> torch.nn.Module: ...

        def prepare_inputs_for_generation(self, ids: torch.Tensor, /, **kwargs: object) -> dict[str, object]: ...

        def _update_model_kwargs_for_generation(
            self, outputs: object, kwargs: dict[str, object], is_encoder_decoder: bool
        ) -> dict[str, object]: ...


class Tokenizer(Protocol):
    """What spelling asks of a tokenizer."""

    @property
    def all_special_ids(self) -> list[int]: ...

    def decode(self, ids: list[int], *, skip_special_tokens: bool, clean_up_tokenization_spaces: bool) -> str: ...

    def convert_ids_to_tokens(self, ids: int, /) -> str | bytes | None: ...
