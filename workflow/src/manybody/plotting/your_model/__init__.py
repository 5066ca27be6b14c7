"""Figures of models that were trained elsewhere, as `plotting.simplicity` describes them."""
