"""What a trained model says: its losses on sequences, its maps, couplings and contacts."""
