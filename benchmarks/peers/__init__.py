"""Other packages on the same problem, and the library itself: one file each."""
