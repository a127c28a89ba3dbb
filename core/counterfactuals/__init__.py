"""Counterfactual texts: other settings, and the same noise applied to other distributions."""
