"""Rewards spread over tokens, and what each token was worth (GAE)."""

from __future__ import annotations

import torch

GAE_LAMBDA = 0.95
"""λ of Schulman et al., "High-dimensional continuous control using generalized advantage estimation" (2016). Nothing is
discounted: γ = 1."""


def token_rewards(
    scores: torch.Tensor, log_ratio: torch.Tensor, mask: torch.Tensor, beta: float
) -> torch.Tensor:  # fmt: skip
    """[B, T]: −β · log(π / π_SFT) at each token that was written, and the text's score [B] at its last."""
    spread = -beta * log_ratio * mask
    last = (mask.sum(1) - 1).clamp(min=0)
    spread[torch.arange(len(spread)), last] += scores
    return spread


def generalized_advantages(
    rewards: torch.Tensor, values: torch.Tensor, mask: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """Advantages and returns, both [B, T], of rewards and values [B, T]; 0 where nothing was written.

    A_t = Σ_k λ^k δ_(t+k) with δ_t = r_t + V_(t+1) − V_t; the value behind the last token is 0.
    """
    values = values * mask
    running = torch.zeros(len(rewards))
    found = torch.zeros_like(rewards)
    for t in reversed(range(rewards.shape[1])):
        following = values[:, t + 1] if t + 1 < rewards.shape[1] else torch.zeros(len(rewards))
        running = rewards[:, t] + following - values[:, t] + GAE_LAMBDA * running
        running = running * mask[:, t]
        found[:, t] = running
    return found, found + values


def whiten(values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The same with mean 0 and deviation 1 over what was written."""
    among = values[mask]
    return (values - among.mean()) / (among.std(unbiased=False) + 1e-6) * mask
