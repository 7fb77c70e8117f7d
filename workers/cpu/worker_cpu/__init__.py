"""Worker for the CPU: ONNX graphs, Whisper, llama.cpp and functions."""
