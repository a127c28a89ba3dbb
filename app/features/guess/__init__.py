"""Guess first: the user guesses the next token before its probabilities are shown."""
