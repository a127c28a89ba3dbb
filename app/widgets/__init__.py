"""General-purpose widgets that do not depend on decoding: plain values in, signals out."""
