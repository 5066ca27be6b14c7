"""Names of generators and students: `manybody.models.labels`."""

from manybody.models.labels import bounded, generator, network, scale, short, target

__all__ = ["bounded", "generator", "network", "scale", "short", "target"]
