"""Reading data: rows in memory, views of them, and text files."""
