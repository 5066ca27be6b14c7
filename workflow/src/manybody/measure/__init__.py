"""Measurements of trained models: losses on sequences, spectra, maps, couplings, contacts."""
