# SPDX-License-Identifier: Apache-2.0
"""The package under test is the checkout's, as in tests/python."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
