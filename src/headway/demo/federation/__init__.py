"""Three deployments on loopback and one page about them: ``headway demo --federation``."""
