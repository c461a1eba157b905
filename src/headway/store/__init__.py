"""The only SQL in the project, behind verbs of intent, one module per aggregate."""
