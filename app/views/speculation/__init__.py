"""The speculation view: rounds of drafts."""
