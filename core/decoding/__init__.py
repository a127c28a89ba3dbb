"""What strategies share: settings, the funnel, forward passes, stopping, and turning steps into events."""
