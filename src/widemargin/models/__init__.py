"""What a fit leaves: decision functions, and the files that hold them."""
