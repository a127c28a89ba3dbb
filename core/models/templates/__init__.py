"""Chat templates: untrusted programs, run in jinja's sandbox with limits on time and size."""
