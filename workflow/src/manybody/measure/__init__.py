"""Measurements of trained models: losses on sequences, spectra, maps, couplings, contacts, and the
times at which they learn."""
