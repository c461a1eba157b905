"""Between deployments: events, claims, the exchange membrane, the Manifest Scheduler Worker."""
