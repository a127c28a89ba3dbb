"""Inside one step, when somebody asks: what each layer would have chosen, what in the text the choice hangs on, and
what attention read. A run pays nothing for it."""
