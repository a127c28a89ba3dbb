"""Models in GGUF files, the format of llama.cpp, LM Studio and Ollama.

Files: `file_names`, `gguf_file` (reads), `file_writer`, `file_summary` (describes in lists), `local_models` (finds).
Meaning, for reading and writing: `architectures`, `model_config`, `rotary_positions`, `tensor_names`,
`tensor_operations`. Tokenizers: `vocabulary` (what llama.cpp assumes), `pre_tokenizer_rules`, `tokenizer` (reads),
`tokenizer_export`, `tokenizer_samples` (texts for comparisons). Weights: `block_formats`, `block_matrix`,
`block_layers`. Whole models: `loading`, `export`; `adapter` reads LoRA. Nothing here depends on how other models are
found or planned.
"""
