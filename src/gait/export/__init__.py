"""A trained network for other homes: one ONNX graph, or one C file with the filter around it."""

from __future__ import annotations

from gait.export.c import CFiles, c_files, save_c
from gait.export.onnx import onnx_model, save_onnx

__all__ = ["CFiles", "c_files", "onnx_model", "save_c", "save_onnx"]
