"""seaborn, without what it imports for densities and clusters, which no figure has."""

from manybody.io.quick_start import without_modules

with without_modules("scipy.stats", "scipy.cluster"):
    import seaborn

__all__ = ["seaborn"]
