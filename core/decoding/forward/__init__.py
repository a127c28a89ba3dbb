"""Forward passes: the module's own and the fused ones."""
