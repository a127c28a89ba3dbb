"""What opens the preference lab and keeps its room in step."""
