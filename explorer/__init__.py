"""MiniMind Block Explorer: every operation of one Transformer block, with its real numbers."""
