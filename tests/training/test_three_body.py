"""Three-body terms: their logits and slopes, scores of triples, parts, intervals, planted laws."""

from itertools import combinations

import numpy as np
import pytest
from scipy.special import log_softmax
from scipy.stats import t as student

from manybody.training import three_body

LENGTH, COLOURS, COUNT = 6, 3, 40
DRAWS = np.random.default_rng(0)
OWN = DRAWS.integers(-1, COLOURS, (COUNT, LENGTH))  # with gaps
PART = three_body.Part(OWN, DRAWS.random(COUNT) + 0.1, np.arange(COUNT), COLOURS)
LOGITS = DRAWS.standard_normal((COUNT, LENGTH, COLOURS))
SHARES = three_body._shares(PART)
TRIPLES = np.array([[0, 2, 3], [1, 2, 5], [0, 1, 3]])
FORMS = pytest.mark.parametrize(
    "form", [three_body.Triples(TRIPLES, SHARES), three_body.Heads(2, SHARES)], ids=["few", "heads"]
)


def vector(form):
    heads = isinstance(form, three_body.Heads)
    size = 2 * (LENGTH + COLOURS**3) if heads else len(TRIPLES) * COLOURS**3
    return np.random.default_rng(1).standard_normal(size)


def tables(form, numbers):
    """T of all triples i < j < k, as the definitions have it."""
    if isinstance(form, three_body.Triples):
        return dict(zip(map(tuple, TRIPLES), numbers.reshape(-1, *3 * (COLOURS,)), strict=True))
    v, u = numbers[: 2 * LENGTH].reshape(2, -1), numbers[2 * LENGTH :].reshape(2, *3 * (COLOURS,))
    u = sum(u.transpose(0, *order) for order in [(1, 2, 3), (2, 3, 1), (3, 1, 2)]) / 3
    u = (u + u.transpose(0, 1, 3, 2)) / 2
    triples = combinations(range(LENGTH), 3)
    return {t: np.einsum("h,habc->abc", v[:, t].prod(axis=1), u) for t in triples}


def logits_of(form, numbers, own):
    """T of each colour at each site less that of the site's mean, as the formula is written."""
    one_hots = np.eye(COLOURS)[own] - SHARES
    one_hots[own < 0] = 0
    found = np.zeros((*own.shape, COLOURS))
    for sites, table in tables(form, numbers).items():
        for place, site in enumerate(sites):
            first, second = (one_hots[:, other] for other in sites if other != site)
            found[:, site] += np.einsum(
                "abc,nb,nc->na", np.moveaxis(table, place, 0), first, second
            )
    return found


def without_mean(logits):
    return logits - logits.mean(axis=-1, keepdims=True)


@pytest.mark.long
@FORMS
def test_logits_are_those_of_the_definition(form):
    found = LOGITS.copy()
    form.add(OWN, vector(form), found)
    expected = LOGITS + logits_of(form, vector(form), OWN)
    np.testing.assert_allclose(without_mean(found), without_mean(expected), rtol=0, atol=1e-12)


@pytest.mark.long
@FORMS
def test_slopes_are_the_numerical_ones(form):
    point, step = vector(form), 1e-5
    direction = np.random.default_rng(2).standard_normal(len(point))

    def loss(numbers):
        return PART.weights @ three_body._errors(PART, LOGITS, form, numbers)[0]

    slope = (loss(point + step * direction) - loss(point - step * direction)) / (2 * step)
    _, errors = three_body._errors(PART, LOGITS, form, point)
    assert -form.gradient(OWN, point, errors) @ direction == pytest.approx(slope, rel=1e-6)


@pytest.mark.long
def test_losses_and_errors_leave_gaps_out():
    losses, errors = three_body._errors(PART, LOGITS)
    logs = log_softmax(LOGITS, axis=-1)
    own = np.take_along_axis(logs, np.maximum(OWN, 0)[..., None], 2)[..., 0]
    np.testing.assert_allclose(losses, -np.where(OWN >= 0, own, 0).sum(axis=1), atol=1e-12)
    expected = np.where((OWN >= 0)[..., None], np.eye(COLOURS)[OWN] - np.exp(logs), 0)
    np.testing.assert_allclose(errors, PART.weights[:, None, None] * expected, atol=1e-12)


@pytest.mark.long
def test_scores_are_those_of_the_formula():
    errors = three_body._errors(PART, LOGITS)[1]
    spread = np.random.default_rng(3).random((LENGTH, COLOURS)) + 0.1
    found, weights = np.zeros((1, LENGTH)), PART.weights
    three_body.loops.screen(
        OWN, errors.reshape(COUNT, -1).astype(np.float32), SHARES, spread, weights.sum(), 7.0, 5.0,
        np.array([1]), np.array([4]), found,
    )  # fmt: skip
    # Gaps in one of the two are left out of the sums, as there is no pair of colours.
    one, other = (np.eye(COLOURS)[OWN[:, j]] for j in (1, 4))
    seen = (OWN[:, [1, 4]] >= 0).all(axis=1)
    for site in (0, 2, 3, 5):
        kept = errors[seen, site]
        g = np.einsum(
            "na,nb,nc->abc", kept, one[seen] - SHARES[1], other[seen] - SHARES[4], optimize=True
        )
        f = np.einsum("a,b,c->abc", spread[site], SHARES[1], SHARES[4])
        expected = ((g**2 - 7 * f) / (weights.sum() * f + 5)).sum()
        assert found[0, site] == pytest.approx(expected, rel=1e-4)
    assert found[0, 1] == found[0, 4] == 0


def test_parts_have_whole_clusters():
    clusters = np.repeat(np.arange(60), 3)[: COUNT * 4]
    part = three_body.Part(np.zeros((160, 5), int), np.ones(160), clusters, 1)
    train, test = three_body._parted(part, np.random.default_rng(0))
    assert not set(train.clusters) & set(test.clusters)
    assert len(train.own) + len(test.own) == 160
    assert 0.17 < len(test.own) / 160 <= 0.2


def test_an_interval_is_students_of_clusters_not_of_sequences():
    gains = np.random.default_rng(5).normal(0.5, 1, 50)
    part = three_body.Part(np.zeros((50, 10), int), np.full(50, 2.0), np.arange(50), 1)
    gain, low, high, _ = three_body.judge(gains, part)
    error = gains.std(ddof=1) / 10 / np.sqrt(50)
    assert gain == pytest.approx(gains.mean() / 10)
    assert (high - gain, gain - low) == pytest.approx(2 * (student(49).ppf(0.975) * error,))
    # Copies of a sequence in its cluster tell nothing new.
    copied = three_body.Part(*(np.repeat(one, 4, axis=0) for one in part[:3]), 1)
    assert three_body.judge(np.repeat(gains, 4), copied) == pytest.approx((gain, low, high, _))


@pytest.mark.parametrize(
    ("mean", "spread", "verdict"),
    [(0.03, 0.01, "yes"), (0.002, 0.01, "no"), (-0.03, 0.01, "no"), (0.03, 0.3, "undecided"),
     (0.009, 0.02, "undecided")],
)  # fmt: skip
def test_verdicts(mean, spread, verdict):
    gains = 10 * (mean + spread * np.tile([-1.0, 1.0], 50))
    part = three_body.Part(np.zeros((100, 10), int), np.ones(100), np.arange(100), 1)
    assert three_body.judge(gains, part)[3] == verdict


def test_what_does_not_fit_is_refused():
    tokens = np.random.default_rng(6).integers(0, 3, (200, 5))
    with pytest.raises(ValueError, match="clusters: 0 of 1 can be held out"):
        three_body.compare(tokens, 3, None, np.zeros(200, int))
    with pytest.raises(ValueError, match=r"clusters: shape \(9,\)"):
        three_body.compare(tokens, 3, None, np.zeros(9, int))
    with pytest.raises(ValueError, match="numbers from 0 to 1"):
        three_body.compare(tokens, 2, None, np.arange(200))


class Law:
    """Sites with fields, some pairs, and random tables of some triples without parts of one or two
    sites, all of normal numbers, but for tables whose variances V add up to so much that
    independent uniform sites would have 3 V / (2 L) = `nats` a site of them."""

    def __init__(self, seed, nats, length=30, colours=5, pairs=40, triples=10):
        draws = np.random.default_rng(seed)
        self.fields = draws.normal(0, 0.5, (length, colours))
        self.couplings = np.zeros((length, colours, length, colours))
        first, second = np.triu_indices(length, 1)
        for pair in draws.choice(len(first), pairs, replace=False):
            i, j = first[pair], second[pair]
            self.couplings[i, :, j] = draws.normal(0, 0.6, (colours, colours))
            self.couplings[j, :, i] = self.couplings[i, :, j].T
        every = np.array(list(combinations(range(length), 3)))
        self.triples = every[draws.choice(len(every), triples, replace=False)]
        self.tables = draws.standard_normal((triples, *3 * (colours,)))
        for axis in (1, 2, 3):
            self.tables -= self.tables.mean(axis=axis, keepdims=True)
        variance = (self.tables**2).mean(axis=(1, 2, 3)).sum()
        self.tables *= np.sqrt(nats * 2 * length / 3 / variance)

    def logits(self, tokens, i):
        """Of site i, exactly: (N, q)."""
        colours = self.fields.shape[1]
        one_hots = np.eye(colours)[tokens].reshape(len(tokens), -1)
        found = self.fields[i] + one_hots @ self.couplings[i].reshape(colours, -1).T
        for where, table in zip(self.triples, self.tables, strict=True):
            if i in where:
                j, k = where[where != i]
                turned = np.moveaxis(table, np.flatnonzero(where == i)[0], 2)
                found += turned[tokens[:, j], tokens[:, k]]
        return found

    def sample(self, count, seed, sweeps=40):
        draws = np.random.default_rng([seed, count])
        length, colours = self.fields.shape
        tokens = draws.integers(0, colours, (count, length))
        for i in np.tile(np.arange(length), sweeps):
            logits = self.logits(tokens, i)
            tokens[:, i] = (logits + draws.gumbel(size=logits.shape)).argmax(axis=1)
        return tokens

    def nats(self, seed, count=5000):
        """What the triples add to the best pairs, in nats a site: the loss of pairs that hardly
        have a penalty, less that of the law. What pairs learn by heart lowers their loss on their
        own sequences by as much as it raises that on others, so that half of each is counted."""
        length, colours = self.fields.shape
        parts = [self.sample(count, [seed, half], 25) for half in range(2)]
        parts = [three_body._part(one, colours, None, np.arange(count), None) for one in parts]
        pairs, found = three_body._pairs(parts[0], 0.05, 1), []
        for part in parts:
            exact = np.stack([self.logits(part.own, i) for i in range(length)], axis=1)
            losses = [
                three_body._errors(part, logits)[0].mean()
                for logits in (three_body._logits(pairs, part), exact)
            ]
            found.append((losses[0] - losses[1]) / length)
        return np.mean(found)


@pytest.mark.long
def test_a_planted_triple_is_found_whatever_the_colours_are_called():
    law = Law(0, 0.1, length=8, colours=3, pairs=5, triples=1)
    tokens = law.sample(1000, 0, 20)
    found = three_body.compare(tokens, 3, None, np.arange(1000), gap=None)
    assert found.verdict == "yes"
    assert found.triples[0].tolist() == law.triples[0].tolist()
    assert (found.form, found.held_out, found.clusters) == ("triples", 200, 200)
    # The loss of the pairs less what the triples gain is that of the law itself.
    logs = [
        log_softmax(law.logits(tokens, i), axis=1)[np.arange(1000), tokens[:, i]] for i in range(8)
    ]
    assert found.loss - found.gain == pytest.approx(-np.mean(logs), abs=0.03)
    # Colours of a larger alphabet, of which the others do not occur, its gap among them.
    renamed = three_body.compare(np.array([7, 4, 9])[tokens], 21, None, np.arange(1000))
    assert renamed[:3] == pytest.approx(found[:3], rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(("nats", "verdict", "other"), [(0.03, "yes", "no"), (0.0, "no", "yes")])
def test_twenty_planted_families(nats, verdict, other):
    found = []
    for seed in range(20):
        law = Law(seed, nats)
        if nats:
            law.tables *= np.sqrt(nats / law.nats(seed))
        tokens = law.sample(3000, seed)
        made = three_body.compare(tokens, 5, None, np.arange(3000), gap=None, seed=seed)
        found.append(made.verdict)
    assert found.count(verdict) >= 18
    assert found.count(other) == 0
