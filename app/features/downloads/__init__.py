"""Downloads of models from the Hugging Face Hub."""
