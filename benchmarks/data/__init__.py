"""Reading and writing data."""
