"""What every job needs besides its science: logs, progress, devices, random numbers."""
