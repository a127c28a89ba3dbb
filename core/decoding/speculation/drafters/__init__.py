"""What can propose tokens: a smaller model, the text so far, the target's own lower layers."""
