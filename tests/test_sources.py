"""A checkpoint's block as the explorer's block: what it receives is what the whole model gives it."""

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from explorer import Edit, RunSpec, SpecError, allowance, run, sources
from explorer.checkpoints import CheckpointError
from explorer.limits import LIMITS
from explorer.model.causal_lm import MiniMindForCausalLM
from explorer.model.config import MiniMindConfig
from explorer.offers import OFFERS, Offer

WORDS = ["<unk>", "the", "cat", "sees", "a", "dog", ".", "and", "runs"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    torch.manual_seed(3)
    sizes = {"hidden_size": 24, "num_attention_heads": 3, "num_key_value_heads": 1, "head_dim": 6}
    config = MiniMindConfig(**sizes, num_hidden_layers=3, vocab_size=len(WORDS), max_position_embeddings=64)
    made = MiniMindForCausalLM(config).eval()
    folder = tmp_path_factory.mktemp("checkpoint")
    made.save_pretrained(folder)
    tokenizer = Tokenizer(models.WordLevel({w: n for n, w in enumerate(WORDS)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    sources.offer("small", folder)
    yield made
    del OFFERS["small"]


def spec_for(text, **more):
    return RunSpec(weights="checkpoint:small", text=text, **{**sources.fit_to_text("small", text), **more})


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_the_block_computes_what_the_whole_model_computes_there(model, layer):
    text = "the cat sees a dog ."
    trace = run(spec_for(text, layer=layer))
    ids = torch.tensor([[WORDS.index(w) for w in text.split()]])
    with torch.no_grad():
        states = model.model(ids, output_hidden_states=True).hidden_states
    torch.testing.assert_close(torch.tensor(trace["resid_pre"]), states[layer])
    if layer < 2:
        torch.testing.assert_close(torch.tensor(trace["resid_post"]), states[layer + 1])
    assert trace.tokens == (tuple(text.split()),)


def test_lines_are_batch_rows_padded_on_the_left(model):
    spec = spec_for("the cat runs\nthe cat sees a dog")
    assert (spec.B, spec.T, spec.padding) == (2, 5, (2, 0))
    trace = run(spec)
    assert trace.tokens[0] == ("", "", "the", "cat", "runs")
    alone = run(spec_for("the cat runs"))
    torch.testing.assert_close(torch.tensor(trace["resid_post"][0, 2:]), torch.tensor(alone["resid_post"][0]))


def test_a_cache_holds_the_earlier_tokens(model):
    whole = run(spec_for("the cat sees a dog", layer=1))
    step = run(spec_for("the cat sees a dog", layer=1, past=4, T=1))
    torch.testing.assert_close(torch.tensor(step["resid_post"][:, -1]), torch.tensor(whole["resid_post"][:, -1]))
    assert step.sizes["P"] == 4 and step.tokens == whole.tokens


def test_sizes_follow_the_checkpoint_and_edits_are_checked_against_them(model):
    spec = spec_for("the cat", d_model=999, edits=[Edit("probs", (0, 2, 1, 0), 1.0)])
    assert (spec.d_model, spec.h, spec.h_kv, spec.d_h) == (24, 3, 1, 6)
    assert run(spec)["probs"][0, 2, 1, 0] == 1.0
    with pytest.raises(SpecError, match="outside"):
        spec_for("the cat", edits=[Edit("probs", (0, 3, 1, 0), 1.0)])


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ({"weights": "checkpoint:other"}, "weights", "Offered:"),
        ({"text": "the cat", "layer": 3}, "layer", "from 0 to 2"),
        ({"text": "the cat", "T": 5}, "T", "has 2 tokens"),
        ({"text": "the cat", "past": 1, "T": 5}, "T", "Choose T up to 1,"),
        ({"text": "the cat", "past": 2, "T": 1}, "past", "past = 2 leaves none to this call. Choose past up to 1,"),
        ({"text": "the cat", "B": 2, "T": 2}, "B", "has 1 lines"),
    ],
)
def test_what_does_not_fit_is_said(model, fields, field, words):
    with pytest.raises(SpecError) as caught:
        run(RunSpec(**{"weights": "checkpoint:small", **fields}))
    assert words in caught.value.errors[field]


def test_an_empty_text_is_refused(model):
    with pytest.raises(SpecError, match="at least one word"):
        sources.fit_to_text("small", " \n ")


def test_a_folder_that_cannot_be_opened_is_not_offered(tmp_path):
    with pytest.raises(CheckpointError):
        sources.offer("broken", tmp_path)
    assert "broken" not in OFFERS


def test_a_byte_level_token_is_shown_as_its_text(model, tmp_path):
    model.save_pretrained(tmp_path)
    pieces = {"<unk>": 0, "Ġ": 1, "c": 2, "a": 3, "t": 4, "ca": 5, "cat": 6, "Ġcat": 7, "s": 8}
    tokenizer = Tokenizer(models.BPE(pieces, [("c", "a"), ("ca", "t"), ("Ġ", "cat")], unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    sources.offer("bytes", tmp_path)
    try:
        trace = run(RunSpec(weights="checkpoint:bytes", text="cat cats", **sources.fit_to_text("bytes", "cat cats")))
    finally:
        del OFFERS["bytes"]
    assert trace.tokens == (("cat", " cat", "s"),)


def test_a_late_block_counts_what_the_earlier_ones_compute(monkeypatch):
    sizes = {"d_model": 768, "h": 8, "h_kv": 4, "d_h": 96, "d_ff": 2432, "experts": 0}
    monkeypatch.setitem(OFFERS, "deep", Offer("deep", "nowhere", 64, sizes))
    early = RunSpec(weights="checkpoint:deep", text="x", T=256, layer=3)
    with pytest.raises(SpecError) as refused:
        RunSpec(weights="checkpoint:deep", text="x", T=256, layer=40)
    assert early.block_flops * 41 > LIMITS.flops > early.block_flops * 4
    assert list(refused.value.errors) == ["T"]
    assert "multiplications" in refused.value.errors["T"]


def test_reading_up_to_a_block_stops_when_the_time_is_up(model, monkeypatch):
    spec = spec_for("the dog runs", layer=2)
    sources._stream.cache_clear()
    with allowance.started() as held:
        held.until = 0.0
        with pytest.raises(allowance.OutOfTime):
            sources.stream_of(spec)
    assert sources.stream_of(spec).shape == (1, 3, 24)


@pytest.mark.parametrize("text", ["", "  \n "])
def test_a_link_without_a_text_says_that_it_is_empty(model, text):
    with pytest.raises(SpecError) as refused:
        run(RunSpec(weights="checkpoint:small", text=text, T=2))
    assert refused.value.errors == {"text": "The text is empty. Type at least one word for the checkpoint to read."}
