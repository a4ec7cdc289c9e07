"""What the library is made of: these alone may use names that are not public."""
