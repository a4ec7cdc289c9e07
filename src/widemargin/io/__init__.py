"""Models on disk: our own format, LIBLINEAR's and ONNX, one file each."""
