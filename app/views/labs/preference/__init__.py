"""The preference lab's room: rankings, fine-tuning, reward model, PPO."""
