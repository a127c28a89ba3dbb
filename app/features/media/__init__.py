"""Audio and images of a prompt: adding, reading, recording and playing them."""
