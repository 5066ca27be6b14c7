"""Files, seeds, devices, logs, options: what every job needs besides its science."""
