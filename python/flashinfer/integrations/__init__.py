# SPDX-License-Identifier: Apache-2.0
"""Programs that run on this library's ops: one module a program. None is imported by `import flashinfer`."""
