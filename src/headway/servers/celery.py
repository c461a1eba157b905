"""Executions on Celery workers; needs the extra ``headway[celery]``."""

from headway.extras import require

require("celery")
