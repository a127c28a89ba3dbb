"""Other settings with the same noise: atlas of a setting, effects of settings, twins."""
