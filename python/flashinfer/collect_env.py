# SPDX-License-Identifier: Apache-2.0
"""The environment report of `flashinfer collect-env`, for a bug report."""
import json


def collect_env_info():
    """{section: {key: value}}"""
    import io

    from . import __main__ as command

    text = io.StringIO()
    command.run(["collect-env", "--json"], text.write)
    return json.loads(text.getvalue())


def format_report(report):
    """The text of a report, as the command prints it."""
    width = max((len(key) for section in report.values() for key in section), default=0)
    lines = ["### FlashInfer environment report", "<!-- paste this whole report into an issue -->"]
    for title, section in report.items():
        lines += ["", f"==== {title} ====", *(f"{key:<{width}} : {value}" for key, value in section.items())]
    return "\n".join(lines)


def main():
    print(format_report(collect_env_info()))


if __name__ == "__main__":
    main()
