"""Record calls of transformers' `generate` as events: hooks on a model, and a recorder for each decoding loop."""
