"""Models in GGUF files, the format of llama.cpp, LM Studio and Ollama."""
