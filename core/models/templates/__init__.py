"""Chat templates: programs of strangers, run in jinja's sandbox with limits on time and size."""
