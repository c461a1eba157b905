"""The peers headway is measured beside: what to install for each, and how each is driven."""
