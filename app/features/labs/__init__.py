"""The Speed, Scale and Preference labs: tools in windows of their own, created when first opened."""
