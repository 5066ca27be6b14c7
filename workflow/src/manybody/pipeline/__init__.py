"""The whole config, and what the rules ask of it: paths, needs, resources, advice."""
