"""The setting at which the numbers of potts, section 6, were measured.

Gates on how well couplings are found ask for numbers that hold there. Figures of any other source,
or of too few runs to confirm a gate, do not carry it. How far one sample of M sequences is from the
mean of many was measured once, over 6 samples of 3000; it is kept beside each gate, since an error
that a run measures itself must not decide which gates the run has.
"""

DEFAULT = {"length": 20, "vocabulary": 20, "couplings": "contact-map", "colours": "stored"}
BETAS = (1.65, 1.75)  # of the default setting
M = 3000  # training sequences at which the bounds are meant


def departure(source: dict, beta: float) -> str:
    """Why samples of `source`, its entry in the config, are not the specification's default
    setting; empty if they are."""
    reasons = [f"{key} = {source.get(key)}" for key in DEFAULT if source.get(key) != DEFAULT[key]]
    if source.get("fields") is not None:
        reasons.append("fields")
    if not BETAS[0] <= beta <= BETAS[1]:
        reasons.append(f"beta = {beta:.4g}")
    return f"not the default setting: {', '.join(reasons)}" if reasons else ""
