"""Artifacts on disk: whole or not there, listed in manifests, held by one writer at a time."""
