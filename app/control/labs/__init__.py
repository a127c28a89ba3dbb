"""The labs' rooms: what opens them, and what keeps each in step with what it runs."""
