"""Run history: saves every run, lists and finds saved runs, and goes back and forward through them."""
