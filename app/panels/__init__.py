"""What is set: model, strategy, cache, prompt, parameters, presets, settings."""
