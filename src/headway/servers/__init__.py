"""Where executions are sent: headway's own workers, Celery, or straight into this thread."""
