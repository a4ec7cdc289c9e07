"""Files, free memory, and deadlines."""
