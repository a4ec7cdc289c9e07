"""The tests, a folder for each room, and what they share in `cases`."""
