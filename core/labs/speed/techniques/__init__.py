"""One module per technique to lower latency: its rows, and the measurement of one of them."""
