"""Every model's fast forward against the plain one: explicit copies, one mask each."""

import inspect
import json
from importlib import import_module
from itertools import accumulate

import child
import explicit
import pytest
import torch
from torch.profiler import ProfilerActivity, profile
from transformers import GPTNeoModel, RobertaPreLayerNormModel

from manybody import models
from manybody.models import ARCHITECTURES, build
from manybody.models.bert.network import rows_of_copies
from manybody.models.factored import copies as of_copies, network as factored

BATCH, LENGTH, VOCABULARY = 5, 7, 9


def factored_model(layers, rank=4, variant="exact", bias=True, **sizes):
    return {
        "architecture": "factored",
        "vocabulary": VOCABULARY,
        "length": LENGTH,
        "layers": layers,
        "rank": rank,
        "variant": variant,
        "bias": bias,
        **sizes,
    }


def transformer(architecture, layers=2, **sizes):
    return {
        "architecture": architecture,
        "vocabulary": VOCABULARY,
        "length": LENGTH,
        "layers": layers,
        "heads": 2,
        "width": 8,
        "mlp": 12,
        **sizes,
    }


def made(description, dtype=torch.float64, seed=3):
    """A model with weights large enough that each of its terms shows."""
    torch.manual_seed(seed)
    model = build(description).to(dtype)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.startswith("left"):
                weight.mul_(4)
            elif not name.startswith(("attention", "right")):
                weight.add_(0.3 * torch.randn_like(weight))
    return model


def copies(kind):
    """rows, positions: a share of each sequence's positions, one less of the last; all of them; or
    as they come."""
    if kind == "all":
        rows, positions = torch.meshgrid(torch.arange(BATCH), torch.arange(LENGTH), indexing="ij")
    elif kind == "share":
        rows = torch.arange(BATCH).repeat_interleave(2)
        positions = torch.tensor([0, 3, 1, 2, 6, 5, 4, 0, 3, 6])
    elif kind == "short":
        rows, positions = (part[:-1] for part in copies("share"))
    else:
        rows, positions = torch.tensor([4, 0, 0, 2, 4, 1]), torch.tensor([0, 3, 6, 2, 2, 5])
    return rows.flatten(), positions.flatten()


def tokens_of(seed=5, vocabulary=VOCABULARY):
    return torch.randint(vocabulary, (BATCH, LENGTH), generator=torch.Generator().manual_seed(seed))


def compare(model, kind, tolerance):
    """Logits, scored logits and gradients of the fast forward against explicit copies."""
    tokens, (rows, positions) = tokens_of(vocabulary=model.vocabulary), copies(kind)
    if kind == "all":
        features = model.all_masked_features(tokens).flatten(0, 1)
        without_gradients = torch.no_grad()(model.all_masked_features)(tokens).flatten(0, 1)
        assert (without_gradients - features).abs().max() <= tolerance * features.abs().max()
    else:
        features = model.masked_features(tokens, rows, positions)
    fast, plain = model.head(features), explicit.logits(model, tokens, rows, positions)
    scale = plain.abs().max()
    assert (fast - plain).abs().max() <= tolerance * scale
    targets = tokens[rows, positions]
    scored = plain.gather(1, targets[:, None]).squeeze(1)
    assert (model.head_rows(features, targets) - scored).abs().max() <= tolerance * scale

    weight = torch.randn(plain.shape, generator=torch.Generator().manual_seed(1)).to(plain)
    parameters = dict(model.named_parameters())
    got = torch.autograd.grad((fast * weight).sum(), list(parameters.values()))
    expected = torch.autograd.grad((plain * weight).sum(), list(parameters.values()))
    largest = max(part.norm() for part in expected)
    for name, one, other in zip(parameters, got, expected, strict=True):
        # keys' shifts do not change a softmax: their gradient is rounding and is held to the rest
        size = largest if name.endswith("key.bias") else other.norm()
        assert (one - other).norm() <= tolerance * size, name


@pytest.mark.parametrize("kind", ["all", "share", "short", "odd"])
@pytest.mark.parametrize(
    ("rank", "sizes"),
    [
        *((rank, {}) for rank in (4, VOCABULARY, None)),
        *((rank, {"variant": "paper"}) for rank in (4, VOCABULARY, None)),
        *((None, {"heads": heads}) for heads in (2, 3)),
    ],
    ids=str,
)
@pytest.mark.parametrize("layers", [1, 2, 3, 4, 5])
def test_factored_copies_equal_explicit_masking(layers, rank, sizes, kind):
    description = factored_model(layers, rank, **sizes)
    compare(made(description), kind, 1e-12)
    if "variant" not in sizes:
        compare(made(description, torch.float32), kind, 1e-5)


@pytest.mark.parametrize(("kind", "taken"), [("share", BATCH), ("short", BATCH), ("odd", 6)])
def test_each_sequence_is_taken_once_for_all_its_copies(kind, taken, monkeypatch):
    model, (rows, positions), seen = made(factored_model(2)), copies(kind), []

    def features(*given):
        seen.append(len(given[1]))
        return of_copies.features(*given)

    monkeypatch.setattr(factored, "features_of_copies", features)
    model.masked_features(tokens_of(), rows, positions)
    assert seen == [taken]


TUTORIAL = dict(positions="sinusoidal", head="mlp")
INTERPOLATED = dict(architecture="interpolated", vocabulary=VOCABULARY, length=LENGTH)
ENERGY = dict(architecture="energy", vocabulary=VOCABULARY, length=LENGTH, order=3)


@pytest.mark.parametrize("kind", ["all", "share", "odd"])
@pytest.mark.parametrize(
    "description",
    [
        *(transformer("encoder", n, heads=heads) for n in (1, 2, 3) for heads in (1, 2)),
        *(transformer("encoder", n, heads=heads, **TUTORIAL) for n in (1, 3) for heads in (1, 2)),
        transformer("encoder", head="mlp"),
        *(INTERPOLATED | dict(a=a) for a in (0, 0.25, 1, 2.5)),
        INTERPOLATED | dict(a=0.5, vocabulary=5),  # fewer colours than sites
        *(ENERGY | dict(order=order) for order in (2, 3, 4)),
        *(factored_model(n, rank, attention="softmax") for n in (1, 2, 3) for rank in (None, 3)),
        *(factored_model(n, None, attention="softmax", heads=2) for n in (1, 2, 3)),
        *(factored_model(1, rank, bias="site") for rank in (None, 3)),
        factored_model(1, None, bias="site", heads=3),
    ],
)
def test_copies_of_other_models_equal_explicit_masking(description, kind):
    compare(made(description), kind, 1e-12)


@pytest.mark.parametrize("heads", [1, 2])
def test_start_scales_are_the_bounds_of_uniform_weights(heads):
    scale = 0.2
    torch.manual_seed(4)
    description = {"vocabulary": 30, "length": 20, "heads": heads, "init_scale": scale}
    model = build(factored_model(2, None, bias=False) | description)
    assert model.description["init_scale"] == scale
    assert sum(1 for _ in model.parameters()) == 4
    for layer in range(2):
        for weights, size in ((model.attention[layer], 20), (model.left[layer], 30)):
            bound = scale * (3 / size) ** 0.5
            assert 0.98 * bound < weights.abs().max() <= bound
            deviation = weights.var() * size / scale**2 - 1  # the variance is g^2 / N
            assert abs(deviation) < 5 * (0.8 / weights.numel()) ** 0.5


@pytest.mark.parametrize("layers", [2, 4])
def test_factored_logits_start_small_at_any_vocabulary(layers):
    torch.manual_seed(3)
    model = build(dict(architecture="factored", layers=layers, rank=30, vocabulary=6000, length=9))
    tokens = torch.randint(6000, (3, 9), generator=torch.Generator().manual_seed(1))
    assert model(tokens).std() < 0.5  # by the scale of 500 tokens four layers give 10


@pytest.mark.parametrize("kind", ["all", "share"])
@pytest.mark.parametrize("variant", ["exact", "paper"])
@pytest.mark.parametrize("layers", [2, 3, 4])
def test_factored_blocks_change_nothing(layers, variant, kind, monkeypatch):
    for bound in ("BLOCK", "CACHED"):
        monkeypatch.setattr(factored, bound, 2 * LENGTH * VOCABULARY)
    monkeypatch.setattr(of_copies, "CACHED", 3 * LENGTH * VOCABULARY)
    compare(made(factored_model(layers, 4, variant)), kind, 1e-12)
    if variant == "exact":
        compare(made(factored_model(layers, None, heads=2)), kind, 1e-12)


@pytest.mark.parametrize("layers", [2, 3])
def test_factored_table_of_values_changes_nothing(layers, monkeypatch):
    model = made(factored_model(layers, 8))
    for table in (0, 2**24):
        monkeypatch.setattr(of_copies, "TABLE", table)
        compare(model, "all", 1e-12)


@pytest.mark.parametrize("variant", ["exact", "paper"])
@pytest.mark.parametrize("rank", [4, None])
@pytest.mark.parametrize("layers", [1, 2, 4])
def test_factored_in_mixed_precision_stays_near(layers, rank, variant):
    model = made(factored_model(layers, rank, variant), torch.float32)
    tokens = tokens_of()
    with torch.autocast("cpu", torch.bfloat16):
        mixed = model.head(model.all_masked_features(tokens))
    mixed.float().square().sum().backward()
    full = model.head(model.all_masked_features(tokens))
    assert (mixed - full).abs().max() < 0.05 * full.abs().max()
    assert all(torch.isfinite(weight.grad).all() for weight in model.parameters())


@pytest.mark.parametrize("kind", ["all", "share", "odd"])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_bert_masked_rows_equal_the_library_on_masked_copies(layers, kind):
    compare(made(transformer("bert", layers)), kind, 1e-12)
    compare(made(transformer("bert", layers), torch.float32), kind, 1e-5)


def test_rows_of_copies_and_their_gradients_are_the_same_by_index_and_by_product():
    generator = torch.Generator().manual_seed(3)
    rows, positions = torch.tensor([0, 0, 1, 3, 3]), torch.tensor([1, 2, 0, 0, 2])
    x = torch.randn(4 * 3 + 3, 2, generator=generator).double().requires_grad_()
    weight = torch.randn(5 * 3, 2, generator=generator).double()
    found = []
    for product in (False, True):
        copies = rows_of_copies(x, rows, positions, 3, product)
        found.append((copies, *torch.autograd.grad((copies * weight).sum(), x)))
    assert torch.equal(found[0][0], found[1][0])
    torch.testing.assert_close(found[0][1], found[1][1])
    assert torch.equal(found[0][0].view(5, 3, 2)[3], x[[12, 10, 11]])


@pytest.mark.parametrize("architecture", ["bert", "gpt"])
def test_logits_are_those_of_the_library_with_the_same_weights(architecture):
    description, tokens = transformer(architecture, layers=3), tokens_of()
    model = made(description, torch.float32).double()
    given = [tokens < 4] if architecture == "bert" else []
    symbols = tokens.masked_fill(given[0], VOCABULARY) if given else tokens
    expected = model.as_transformers().double()(symbols).logits
    # the library's GPT attends in single precision
    torch.testing.assert_close(model(tokens, *given), expected, rtol=1e-5, atol=1e-6)
    scored = model.head_rows(model.features(tokens, *given), tokens)
    torch.testing.assert_close(
        scored, expected.gather(2, tokens[..., None]).squeeze(2), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize(
    ("architecture", "library", "options", "config"),
    [
        (
            "bert",
            RobertaPreLayerNormModel,
            dict(add_pooling_layer=False),
            dict(
                vocab_size=VOCABULARY + 1,
                type_vocab_size=1,
                pad_token_id=None,
                initializer_range=12**-0.5,
            ),
        ),
        ("gpt", GPTNeoModel, {}, dict(vocab_size=VOCABULARY, attention_types=[[["global"], 2]])),
    ],
)
def test_first_weights_are_drawn_as_those_of_the_library(architecture, library, options, config):
    torch.manual_seed(3)
    weights = build(transformer(architecture, width=12)).state_dict()
    torch.manual_seed(3)
    config = library.config_class(
        hidden_size=12, num_hidden_layers=2, num_attention_heads=2, intermediate_size=12,
        max_position_embeddings=LENGTH, **config,
    )  # fmt: skip
    drawn = library(config, **options).state_dict()
    assert all(
        torch.equal(weight, drawn[name.partition(".")[2]])
        for name, weight in weights.items()
        if not name.startswith("output")
    )


@pytest.mark.parametrize("hidden", [False, True])
def test_maps_of_the_interpolated_model_are_a_row_of_probabilities_for_each_sequence(hidden):
    """(1, B, L, L): one head; the same as that of each sequence alone."""
    model = made(dict(architecture="interpolated", vocabulary=VOCABULARY, length=LENGTH, a=0.5))
    torch.nn.init.normal_(model.scores)
    tokens = tokens_of()
    mask = torch.zeros_like(tokens, dtype=torch.bool)
    mask[:, 2] = True
    given = (mask,) if hidden else ()
    maps = model.attention_maps(tokens, *given)
    assert maps.shape == (1, len(tokens), LENGTH, LENGTH)
    assert torch.allclose(maps.sum(-1), torch.ones(()).to(maps.dtype), atol=1e-12)
    alone = model.attention_maps(tokens[1:2], *(part[1:2] for part in given))
    assert torch.allclose(maps[:, 1], alone[:, 0], atol=1e-12)
    assert not torch.allclose(maps[:, 0], maps[:, 1], atol=1e-6)


DESCRIPTIONS = [
    factored_model(1, None),
    factored_model(3, 4, bias=False),
    factored_model(2, 4, "paper"),
    factored_model(3, None, heads=2, init_scale=0.4),
    ENERGY,
    factored_model(1, None, attention="softmax"),
    transformer("encoder"),
    dict(architecture="interpolated", vocabulary=VOCABULARY, length=LENGTH, a=0.5),
    transformer("bert"),
    transformer("gpt"),
]


@pytest.mark.parametrize("description", DESCRIPTIONS[:-1])
def test_masked_token_is_hidden(description):
    """A masked position's own token is seen nowhere; the others' are."""
    model = made(description)
    tokens, (rows, positions) = tokens_of(), copies("share")
    each = tokens[rows]
    hidden = each.clone()
    hidden[torch.arange(len(rows)), positions] = (
        hidden.gather(1, positions[:, None])[:, 0] + 1
    ) % 9
    seen = each.clone()
    seen[torch.arange(len(rows)), (positions + 1) % LENGTH] = 0
    alone = torch.arange(len(rows))
    before = model.masked_logits(each, alone, positions)
    assert torch.allclose(model.masked_logits(hidden, alone, positions), before, atol=1e-12)
    assert not torch.allclose(model.masked_logits(seen, alone, positions), before, atol=1e-6)


@pytest.mark.parametrize("description", DESCRIPTIONS)
def test_description_rebuilds_the_model_and_the_seed_its_weights(description):
    torch.manual_seed(11)
    first = build(description)
    torch.manual_seed(11)
    again = build(json.loads(json.dumps(first.description)))
    assert again.description == first.description
    ours, theirs = first.state_dict(), again.state_dict()
    assert list(ours) == list(theirs)
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    torch.manual_seed(12)
    other = build(description).state_dict()
    assert not all(torch.equal(ours[name], other[name]) for name in ours)


IMPOSSIBLE = [
    (factored_model(2, rank=10), r"rank 10 is above \|V\| = 9.*null"),
    (factored_model(2, variant="paper", heads=2), "heads is 2.*'paper' with rank 4 has one head"),
    (factored_model(2, rank=4, heads=2), "heads is 2.*rank null, or heads 1"),
    (factored_model(2, bias="site"), "bias 'site' is for one layer, but layers is 2"),
    (factored_model(2, init_scale=0.2), "init_scale 0.2 .* rank is 4; give rank null"),
    (transformer("bert", heads=3), "heads 3 does not divide width 8"),
    (transformer("gpt", heads=3), "heads 3 does not divide width 8"),
    (transformer("encoder", heads=3), "heads 3 does not divide width 8"),
    (ENERGY | dict(order=4, length=3), "energy: order 4 is above L = 3"),
    ({**factored_model(1), "architecture": "rnn"}, "'rnn' is unknown.*bert.*factored.*gpt"),
]


@pytest.mark.parametrize(("description", "message"), IMPOSSIBLE)
def test_impossible_sizes_are_refused(description, message):
    with pytest.raises(ValueError, match=message):
        build(description)


@pytest.mark.parametrize("description", DESCRIPTIONS)
def test_tokens_of_another_length_are_refused(description):
    model = build(description)
    longer = torch.zeros(2, LENGTH + 1, dtype=torch.long)
    with pytest.raises(ValueError, match="length"):
        model(longer)
    if not model.about.causal:
        with pytest.raises(ValueError, match=rf"\(2, {LENGTH + 1}\), expected \(B, {LENGTH}\)"):
            model.all_masked_features(longer)


def test_registry_names_every_architecture():
    here = {description["architecture"] for description in DESCRIPTIONS}
    assert here | {"pretrained"} == set(ARCHITECTURES)  # test_pretrained has that one


def test_what_is_said_of_a_model_needs_neither_torch_nor_pydantic():
    lines = (
        "import sys; from manybody import models",
        "said = [models.about({'architecture': a}).display_name for a in models.ARCHITECTURES]",
        "assert all(said) and not {'torch', 'pydantic'} & set(sys.modules)",
        "typed = [models.options(name) for name in models.ARCHITECTURES]",
        "assert all(typed) and 'torch' not in sys.modules",
    )
    child.run("-c", "\n".join(lines))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_config_s_keys_are_those_that_build_the_model(architecture):
    """With the same defaults; `weights` of the energy model says that none are looked for."""
    network = import_module(f"{ARCHITECTURES[architecture]}.network")
    made = getattr(network, models.about({"architecture": architecture}).network)
    taken = inspect.signature(made).parameters
    keys = models.options(architecture).model_fields.items()
    origin = {"parameters", "weights", "steps", "audit"}  # of weights that are not trained here
    for name, key in keys:
        if name in origin:
            continue
        default = taken[name].default
        if not key.is_required():
            assert key.default == default
    assert {name for name, _ in keys} - origin <= set(taken)


@pytest.mark.parametrize(
    "description", [*DESCRIPTIONS[:-1], factored_model(1, None, bias="site", heads=2)], ids=str
)
def test_the_head_reads_as_many_features_as_are_said(description):
    model, tokens = made(description), tokens_of()
    features = model.all_masked_features(tokens)
    assert features.shape[-1] == model.feature_size
    assert model.head(features[0, 0]).shape == (VOCABULARY,)


@pytest.mark.parametrize(
    ("description", "filled"),
    [
        (transformer("bert", vocabulary=500, length=36, width=64, mlp=128), 0.8),
        (transformer("bert", vocabulary=500, length=36, width=64, mlp=512), 0.8),
        (factored_model(3, None, "paper", vocabulary=500, length=36), 0.4),
        (factored_model(3, 16, "paper", vocabulary=500, length=36), 0.4),
    ],
    ids=str,
)
def test_copies_take_no_more_memory_than_is_said_and_not_much_less(description, filled):
    count, model = 64, made(description)
    rows, tokens = torch.arange(count), torch.arange(count * model.length) % model.vocabulary
    with torch.no_grad(), profile(activities=[ProfilerActivity.CPU], profile_memory=True) as run:
        model.masked_features(tokens.view(count, -1), rows, rows % model.length)
    events = run.profiler.kineto_results.events()
    most = max(accumulate(event.nbytes() for event in events if event.name() == "[memory]"))
    assert filled < most / (8 * count * model.work_size) < 1


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_heads_that_share_their_attention_are_one_head(layers):
    """sum_h A x V^h = A x (sum_h V^h), and heads without values add nothing."""
    single, double = made(factored_model(layers, None)), made(factored_model(layers, None, heads=2))
    with torch.no_grad():
        for layer in range(layers):
            for head in (0, 1):
                double.attention[layer][head] = single.attention[layer]
                double.left[layer][head] = single.left[layer] * (0.3, 0.7)[head]
        double.bias.copy_(single.bias)
    tokens = tokens_of()
    for masked in (None, torch.rand(BATCH, LENGTH, generator=torch.Generator()) < 0.3):
        assert torch.allclose(double(tokens, masked), single(tokens, masked), atol=1e-12)
