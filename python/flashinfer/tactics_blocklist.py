# SPDX-License-Identifier: Apache-2.0
"""Tactics that the autotuner leaves out, because they fail or compute wrong results on some GPU.

    TacticsBlocklist.save("blocked.json", AutoTuner.get().stats.failed_tactics)    # after tuning
    FLASHINFER_TACTICS_BLOCKLIST=blocked.json python program.py                    # they are not measured again

The file is {"invalid_tactics": {"op::Runner": [tactic, ...]}, "_metadata": {...}}, as FlashInfer writes it. Winners that are known already
are not looked up in it.
"""
import datetime
import json
import logging

from .autotuner._files import _METADATA_KEY, _classify_metadata_mismatches, _collect_metadata, _tactic_to_json, _tactic_to_json_hashable, write_json

_log = logging.getLogger("flashinfer.autotuner")
_TACTICS_KEY = "invalid_tactics"


def key_of(custom_op, runner):
    return f"{custom_op}::{runner.__class__.__name__}"


class TacticsBlocklist:
    """What the files that were read say, all together."""

    def __init__(self):
        self._tactics = {}
        self.is_loaded = False

    def load(self, path):
        """Adds a file's tactics. False, with a warning, when it was made in another environment ("*" fits each).

        Raises:
            FileNotFoundError, json.JSONDecodeError
            ValueError: no table of tactics
        """
        with open(path) as f:
            data = json.load(f)
        table = data.get(_TACTICS_KEY, {}) if isinstance(data, dict) else None
        if not isinstance(table, dict) or not all(isinstance(v, list) for v in table.values()):
            raise ValueError(f"{path}: {_TACTICS_KEY!r} must be an object of lists of tactics")
        if _METADATA_KEY in data:
            conflicts, _ = _classify_metadata_mismatches(data[_METADATA_KEY], _collect_metadata())
            if conflicts:
                _log.warning("%s was made in a different environment and is ignored: %s", path,
                             ", ".join(f"{name}: {old} there, {new} here" for name, (old, new) in conflicts.items()))
                return False
        for key, tactics in table.items():
            self._tactics.setdefault(key, set()).update(map(_tactic_to_json_hashable, tactics))
        self.is_loaded = True
        return True

    def filter(self, custom_op, runner, tactics):
        """The tactics of a runner that are not left out, in their order."""
        blocked = self._tactics.get(key_of(custom_op, runner), ())
        return [t for t in tactics if _tactic_to_json_hashable(t) not in blocked]

    def summary(self):
        """{"op::Runner": how many}"""
        return {key: len(tactics) for key, tactics in self._tactics.items()}

    @staticmethod
    def save(path, invalid_tactics, metadata=None):
        """Writes {"op::Runner": tactics} to a file, whose folder is made if need be.

        Args:
            metadata: what the tactics depend on; None: this machine
        """
        made = {**(_collect_metadata() if metadata is None else metadata), "generator_version": "1.0",
                "generated_at": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")}
        write_json(path, {_METADATA_KEY: made, _TACTICS_KEY: {key: sorted(map(_tactic_to_json, tactics), key=str)
                                                              for key, tactics in invalid_tactics.items()}})
