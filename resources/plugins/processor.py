"""My processor: removes long words. Save this file, switch “My processor” on in the parameters, and run."""

from typing import Annotated

import torch
from transformers import LogitsProcessor


class MyProcessor(LogitsProcessor):
    """Removes tokens with more letters than the limit.

    Args:
        letters: The most letters that a token may have.
    """

    def __init__(self, tokenizer, vocab_size, letters: Annotated[int, (1, 12)] = 4):
        # Parameters of the run (tokenizer, vocab_size, eos_token_id, prompt_length, model, device) come by name.
        # All others become controls: int, float, bool, str, Literal[…], list[str].
        lengths = [len(tokenizer.decode([token]).strip()) for token in range(vocab_size)]
        self.too_long = torch.tensor(lengths) > letters

    def __call__(self, input_ids, scores):
        # input_ids: the text so far [texts, tokens]; scores: one column per token [texts, vocabulary].
        return scores.masked_fill(self.too_long.to(scores.device), -float("inf"))
