"""The embedded models and the one runtime that loads them: words, pieces, windows, ONNX sessions."""
