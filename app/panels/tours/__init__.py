"""What a guided tour and the game of guessing show: panels at the foot of the window, and a ring around things."""
