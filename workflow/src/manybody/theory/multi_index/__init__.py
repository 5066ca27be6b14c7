"""Deep attention as a sequence multi-index model: its channel, state evolution, thresholds,
message passing and training (the `multi-index` paper)."""
