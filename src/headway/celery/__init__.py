"""headway's work on Celery: ``CeleryServer`` sends it there, ``install`` has it run there."""

from headway.servers.celery import CeleryServer  # isort: skip - says what is missing
from headway.celery.installing import install

__all__ = ["CeleryServer", "install"]
