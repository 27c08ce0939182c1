"""Learned controllers: an ONNX policy on a MuJoCo scene, described by a small YAML file."""
