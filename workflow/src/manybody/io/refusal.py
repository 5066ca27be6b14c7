"""The error for what a user can mend: its sentence says all, so that no traceback is shown."""


class Refusal(ValueError):
    """Error: the config, a file or an argument asks for what cannot be done.

    The text names the file or `key`, a key of the config's entry that the job is made of or an
    argument, the value found, what was expected and the way out.

    >>> Refusal("found 5; expected at most 4; give fewer", "orders").key
    'orders'
    """

    def __init__(self, said: str, key: str | None = None):
        super().__init__(f"{key}: {said}" if key else said)
        self.key = key

    def within(self, entry: str) -> str:
        """The text with the path of the config's entry before it, such as models.n2."""
        return f"{entry}{'.' if self.key else ': '}{self}"
