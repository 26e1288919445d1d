"""Alertmanager's lifecycle: from alerts to what each channel is told, and when."""
