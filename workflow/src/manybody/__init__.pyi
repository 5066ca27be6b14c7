# What type checkers see of `import manybody`, whose `__getattr__` gives them no types.
from manybody.public import *  # noqa: F403
