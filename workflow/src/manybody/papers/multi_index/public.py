"""Numbers stored with the public code, to be drawn and compared with: not aimed at."""

# The parameters of its state evolution: figure 1, two layers.
TWO_LAYERS = {"skip": 1, "activation": "softmax", "regulariser": 1e-3}

# Figure 1: thresholds over c, and overlaps.
ALPHA_2 = {
    0.1: 0.1914, 0.5: 0.1864, 0.75: 0.1610, 1: 0.1436, 1.5: 0.1241, 2: 0.1119, 3: 0.0943, 4: 0.0827,
}  # fmt: skip
ALPHA_1 = {
    1e-4: 0.318, 0.01: 0.333, 0.1: 0.422, 0.5: 0.755, 0.75: 0.824, 1: 0.794, 1.5: 0.658, 2: 0.513,
    3: 0.304, 4: 0.196,
}  # fmt: skip
OVERLAPS = {
    "Q22": {
        0.2333: 0.0736, 0.3: 0.218, 0.3667: 0.388, 0.4333: 0.585, 0.5: 0.773, 0.6: 0.921,
        0.7: 0.964, 0.8: 0.985,
    },
    "Q11": {
        0.8333: 0.187, 0.9: 0.451, 1.0: 0.614, 1.1: 0.755, 1.2: 0.823, 1.3: 0.864, 1.4: 0.911,
        1.5: 0.910,
    },
}  # fmt: skip

# Figure 1: overlaps and errors of message passing at convergence.
RUNS_SETTING = {"skip": 1, "regulariser": 1e-3, "dimension": 1000}
MESSAGE_PASSING = {
    "Q22": {0.2: 0.014, 0.3: 0.219, 0.4: 0.494, 0.5: 0.773, 0.6: 0.913},
    "Q11": {0.9: 0.26, 1.0: 0.52, 1.1: 0.77, 1.2: 0.83, 1.5: 0.90},
    "error plug-in": {0.1: 0.385, 0.5: 0.183, 1.0: 0.0240, 1.2: 0.0055},
}

# Figure 3: three layers.
DEEP_SETTING = {"skip": 1, "regulariser": 1e-3}
DEEP = {
    "Q33": {0.25: 0.049, 0.375: 0.313, 0.5: 0.635, 0.625: 0.849, 0.75: 0.932, 1.0: 0.977},
    "Q11": {1.0: 0.028, 1.0625: 0.057, 1.25: 0.247, 1.5: 0.445, 2: 0.548},
    "Q22": {1.0: 0.012, 1.25: 0.132, 1.5: 0.406, 2: 0.538},
}

# Figure 2, SGD: medians of 8 runs, epochs at which the cosine of a layer, without the teacher's
# norm |w| / sqrt D, passes a level.
SGD_SETTING = {
    "skip": 1, "dimension": 500, "alpha": 15, "batch": 200, "repeats": 3, "learning_rate": 15,
    "weight_decay": 0.07, "init_scale": 0.9,
}  # fmt: skip
EPOCHS = {2: {0.1: 1.4, 0.5: 2.2, 0.9: 2.9}, 1: {0.1: 13, 0.3: 32, 0.5: 51, 0.75: 89}}
NORMS = {1: 0.946, 2: 0.978}
