# SPDX-License-Identifier: Apache-2.0
"""FlashInfer's own package in the same folder: the files of the two would be mixed, so importing stops here and says so.

Elsewhere on the path (a checkout before an environment that has it) it does no harm. The metadata that flashinfer-cpp-compat installs
under the same name has no RECORD."""
import glob
import os


def _real_package(site):
    for info in glob.glob(os.path.join(glob.escape(site), "flashinfer_python-*.dist-info")):
        record = os.path.join(info, "RECORD")
        if os.path.exists(record):
            with open(record, encoding="utf-8") as file:
                if "flashinfer/__init__.py" in file.read():
                    return "flashinfer-python " + os.path.basename(info)[len("flashinfer_python-"):-len(".dist-info")]
    return None


def check():
    """ImportError when flashinfer-python is installed where this package is."""
    site = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    found = _real_package(site)
    if found:
        raise ImportError(f"flashinfer: {found} and flashinfer-cpp are both installed in {site}, and both are the module `flashinfer`: their files are "
                          "mixed. Run `pip uninstall flashinfer-python flashinfer-cpp`, then install the one you want.")
