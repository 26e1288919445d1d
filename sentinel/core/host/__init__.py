"""The host below the containers: its memory, its filesystems, what its kernel says."""
