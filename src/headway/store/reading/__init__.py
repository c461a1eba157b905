"""The read side's statements, one module per subject; no page reads a table whole."""
