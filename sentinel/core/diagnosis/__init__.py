"""The named cause behind a failure, with the evidence for it."""
