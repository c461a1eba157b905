"""The chaos run: kills, pauses and restarts against a real deployment, and what must hold then."""
