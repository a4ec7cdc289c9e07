"""Feature maps: rows of few numbers whose products are about kernel values."""
