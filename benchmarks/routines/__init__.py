# SPDX-License-Identifier: Apache-2.0
"""The routines of flashinfer_benchmark.py, a module for each family: a function for each routine, which makes its `case.Case`."""
