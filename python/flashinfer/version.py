# SPDX-License-Identifier: Apache-2.0
"""The version of the library, and the git commit that it was built from: 12 digits, or "unknown"."""
from . import _native

__version__ = _native.version()
__git_commit__ = __git_version__ = _native.commit()
