"""What the API answers with: one shape for each thing, so that its document is complete."""
