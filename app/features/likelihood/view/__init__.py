"""The pages of the window on likelihoods."""
