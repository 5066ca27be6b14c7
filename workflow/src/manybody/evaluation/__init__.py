"""What a trained model says: its losses, attention maps, couplings and contacts."""
