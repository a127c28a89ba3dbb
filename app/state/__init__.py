"""What is known, without a widget: runs, requests, trees, rounds, caches over time, the chat."""
