"""Forms made from the JSON schema of an input: the fields to fill in, and what was filled in."""
