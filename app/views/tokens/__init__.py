"""The token view."""
