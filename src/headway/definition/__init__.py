"""What the user writes: workflows with typed inputs, manifests, and the application they form."""
