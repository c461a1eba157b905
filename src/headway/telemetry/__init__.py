"""Metrics and traces, made of the events everything in headway is told by.

Nothing else imports this package: who installs no subscriber pays nothing.
"""
