"""Parts shared by several views."""
