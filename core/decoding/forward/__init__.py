"""Forward passes: the module's own, and the lean one."""
