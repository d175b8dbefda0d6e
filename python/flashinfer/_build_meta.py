# SPDX-License-Identifier: Apache-2.0
"""What the package was built from."""
from .version import __git_commit__, __version__  # noqa: F401
