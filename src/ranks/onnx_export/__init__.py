"""Writes a model as an ONNX file, after onnxruntime has given torch's answers."""
