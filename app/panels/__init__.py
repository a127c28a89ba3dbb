"""The panels: model, strategy, cache, prompt, parameters, presets and settings."""
