"""What a figure's block asks for, by the names of the config."""

from manybody.config.inputs import needs


def test_a_figure_needs_what_its_block_names():
    evaluations = {
        "bert": {
            "seeds": [0, 1],
            "targets": {"n2": {"clone": "n2", "sweep": 20}, "o": {"starts": "n2"}},
        },
        "n2-test": {"seeds": [0], "targets": {"own": {"clone": "n2-norm", "sweep": 20}}},
    }
    config = {"evaluations": evaluations}
    block = {"evaluation": "bert", "seeds": [1], "generators": ["n2-test"], "chains": ["n4"]}
    found = needs(block, config)
    assert found["runs"] == [["bert", 1], ["n2-test", 0]]
    assert needs({"corpora": [block, {"evaluation": "n2-test"}]}, config)["runs"] == found["runs"]
    assert found["clones"] == ["n2", "n2-norm", "n4"]
    assert found["targets"] == {name: entry["targets"] for name, entry in evaluations.items()}
    assert needs({"evaluation": "bert"}, config)["runs"] == [["bert", 0], ["bert", 1]]
    assert needs({"clones": ["n4"]}, config)["clones"] == ["n4"]
    config["sources"] = {"potts": {"length": 10}}
    part = {
        "source": "potts",
        "networks": [{"model": "n1", "seeds": [0, 2]}],
        "protocols": [{"model": "n1", "seeds": [2, 3]}],
        "lines": ["pair"],
        "truth": "true",
    }
    runs = [["n1", 0], ["n1", 2], ["n1", 3], ["pair", 0], ["true", 0]]
    for block in (part, {"parts": [part, part]}):
        found = needs(block, config)
        assert found["models"] == [["potts", *run] for run in runs]
        assert found["displacements"] == [["potts", "n1"]]
        assert found["sources"] == config["sources"]
    assert needs({**part, "exact": "identities"}, config)["theory"] == ["identities"]
    assert needs({"theory": "flow"}, config)["theory"] == ["flow"]
