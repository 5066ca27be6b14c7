"""Trained models' losses on sequences, spectra, maps, couplings, contacts and times of learning."""
