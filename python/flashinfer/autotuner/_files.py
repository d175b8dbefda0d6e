# SPDX-License-Identifier: Apache-2.0
"""Winners on disk: one JSON file {key: [runner, tactic], "_metadata": {...}}, as FlashInfer writes it, and the managed folder of
`autotune_v2`, with a file for each key. A file counts only in the environment in which it was measured."""
import hashlib
import json
import os
import pathlib
import platform
import sys
import tempfile

_METADATA_KEY, _NAMESPACED_RECORDS_KEY, _CACHE_GENERATION_KEY = "_metadata", "_records", "_generation"
_INDETERMINATE = (None, "unknown", "None")


def _tactic_to_json(tactic):
    """Tuples as lists."""
    return [_tactic_to_json(t) for t in tactic] if isinstance(tactic, (tuple, list)) else tactic


def _json_to_tactic(value):
    """Lists as tuples."""
    return tuple(_json_to_tactic(v) for v in value) if isinstance(value, list) else value


def _tactic_to_json_hashable(tactic):
    """Tuples and lists as tuples, in all depths: for sets."""
    return tuple(map(_tactic_to_json_hashable, tactic)) if isinstance(tactic, (tuple, list)) else tactic


def _processor():
    try:
        with open("/proc/cpuinfo") as f:
            return next((line.partition(":")[2].strip() for line in f if line.startswith("model name")), platform.machine())
    except OSError:
        return platform.machine()


def _collect_metadata():
    """What a measurement depends on: versions, and the GPU, or the processor where there is none."""
    from .. import _native

    torch = sys.modules.get("torch")
    cuda = torch is not None and torch.cuda.is_available()
    return {"flashinfer_version": _native.version(), "cuda_version": str(torch.version.cuda) if cuda else "none",
            "gpu": torch.cuda.get_device_name() if cuda else "none", "cpu": _processor()}


def _classify_metadata_mismatches(saved, current):
    """({name: (saved, current)} of certain conflicts, the same of what one side does not know); "*" in a file fits everything."""
    if not isinstance(saved, dict):
        return {}, {name: (None, value) for name, value in current.items()}
    hard, soft = {}, {}
    for name, value in current.items():
        old = saved.get(name)
        if old == "*" or old == value and old is not None:
            continue
        (soft if old in _INDETERMINATE or value in _INDETERMINATE else hard)[name] = (old, value)
    return hard, soft


def write_json(path, data):
    """To a temporary file in the same folder, which is then renamed: readers see the old file or the new one."""
    path = os.path.abspath(path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=os.path.dirname(path), suffix=".tmp")
    try:
        with os.fdopen(descriptor, "w") as f:
            json.dump(data, f, indent=2)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


class Store:
    """The managed folder: <root>/v2/<16 hex digits of the environment>/manifest.json and entries/<24 hex digits of the key>.json."""

    def __init__(self, root, policy):
        from . import autotuner

        metadata = autotuner._collect_metadata()
        environment = metadata if policy is None or policy.is_default else {**metadata, "policy": policy.as_json()}
        digest = hashlib.sha256(json.dumps(environment, sort_keys=True).encode()).hexdigest()
        self.folder = pathlib.Path(root) / "v2" / digest[:16]
        self.manifest = environment
        self.entries = {}
        self.load()

    def load(self):
        """Reads all entries; one that cannot be read, or that belongs to another key, is a miss."""
        self.entries = {}
        for path in sorted((self.folder / "entries").glob("*.json")):
            try:
                data = json.loads(path.read_text())
                if _entry_name(data["key"]) == path.name:
                    self.entries[data["key"]] = (data["runner"], _json_to_tactic(data["tactic"]))
            except (OSError, ValueError, KeyError, TypeError):
                continue

    def put(self, key, runner, tactic):
        """Keeps a winner, on disk at once."""
        text = key.file_key
        self.entries[text] = (runner, tactic)
        if not (self.folder / "manifest.json").exists():
            write_json(self.folder / "manifest.json", self.manifest)
        write_json(self.folder / "entries" / _entry_name(text),
                   {"key": text, "runner": runner, "tactic": _tactic_to_json(tactic), "key_fields": [str(f) for f in key.key_fields]})


def _entry_name(key):
    return hashlib.sha256(key.encode()).hexdigest()[:24] + ".json"


def default_root():
    """FLASHINFER_AUTOTUNE_CACHE_DIR, or the folder `autotune` of the kernel cache."""
    if os.environ.get("FLASHINFER_AUTOTUNE_CACHE_DIR"):
        return os.environ["FLASHINFER_AUTOTUNE_CACHE_DIR"]
    base = os.environ.get("FLASHINFER_WORKSPACE_BASE") or os.path.expanduser("~")
    return os.path.join(base, ".cache", "flashinfer", "autotune")
