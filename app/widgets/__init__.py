"""Parts of the window that know nothing of decoding: plain values go in, signals come out."""
