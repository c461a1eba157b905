"""Who may do what over HTTP, and what is refused before anybody looks at it."""
