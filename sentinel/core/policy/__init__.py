"""What to do, and what not to do, and why."""
