"""The preference lab: rankings, fine-tuning, reward model, PPO."""
