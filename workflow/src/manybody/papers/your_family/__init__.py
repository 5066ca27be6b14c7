"""Pictures of families of the user's: the command `manybody` draws them."""
