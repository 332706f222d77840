"""One pre-norm Transformer block: two updates to the residual stream.

    Y = X + Attention(RMSNorm(X))        tokens share information
    X_next = Y + FeedForward(RMSNorm(Y))   each token reshapes its own features

Touvron et al. 2023, "LLaMA", section 2.2, for the pre-norm arrangement with RMSNorm, SwiGLU and RoPE. Parameter names
are MiniMind's, so its state dict loads as it is. Knows nothing of embeddings, other layers or who reads the taps.
"""

from __future__ import annotations

from torch import Tensor, nn

from explorer.model.attention import Attention, Cache
from explorer.model.config import MiniMindConfig
from explorer.model.feed_forward import FeedForward, MOEFeedForward
from explorer.model.norm import RMSNorm
from explorer.model.rope import Tables
from explorer.model.taps import taps


class MiniMindBlock(nn.Module):
    """hidden_states [B,T,D] -> (hidden_states [B,T,D], present cache or None)."""

    def __init__(self, config: MiniMindConfig, layer_id: int = 0) -> None:
        super().__init__()
        self.layer_id = layer_id
        self.input_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.self_attn = Attention(config)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.mlp = MOEFeedForward(config) if config.use_moe else FeedForward(config)
        self.taps = taps("resid_pre", "attn_norm", "resid_mid", "ffn_norm", "resid_post")

    def forward(
        self,
        hidden_states: Tensor,
        position_embeddings: Tables,
        past_key_value: Cache | None = None,
        use_cache: bool = False,
        attention_mask: Tensor | None = None,
    ) -> tuple[Tensor, Cache | None]:
        """position_embeddings: cos and sin [T,Dh] of these tokens' positions; past_key_value: keys and values
        [B,Hkv,P,Dh] of the tokens before them; attention_mask [B,P+T], 1 real and 0 padding. With use_cache the second
        result is the cache for the next call, [B,Hkv,P+T,Dh] each.
        """
        resid_pre = self.taps["resid_pre"](hidden_states)
        attn_norm = self.taps["attn_norm"](self.input_layernorm(resid_pre))
        attn_out, present = self.self_attn(attn_norm, position_embeddings, past_key_value, use_cache, attention_mask)
        resid_mid = self.taps["resid_mid"](resid_pre + attn_out)
        ffn_norm = self.taps["ffn_norm"](self.post_attention_layernorm(resid_mid))
        resid_post = self.taps["resid_post"](resid_mid + self.mlp(ffn_norm))
        return resid_post, present
