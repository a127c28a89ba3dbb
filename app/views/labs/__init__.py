"""The labs: tools in windows of their own, created when first opened."""
