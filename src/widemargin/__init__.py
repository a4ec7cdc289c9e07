"""widemargin: certified support vector machines."""
