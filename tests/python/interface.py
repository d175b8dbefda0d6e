# SPDX-License-Identifier: Apache-2.0
"""Reads tests/data/upstream_interface.txt, and says how a signature of ours differs from one in it."""
import inspect
import pathlib
import re

DATA = pathlib.Path(__file__).resolve().parents[1] / "data/upstream_interface.txt"


def split(text):
    """"a, *, b=(1, 2)" -> ["a", "*", "b=(1, 2)"]: at commas outside brackets and quotes."""
    parts, depth, quote, start = [], 0, "", 0
    for i, c in enumerate(text):
        if quote:
            quote = "" if c == quote else quote
        elif c in "'\"":
            quote = c
        elif c in "([{<":
            depth += 1
        elif c in ")]}>":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    return [p for p in [*parts, text[start:].strip()] if p]


def read():
    """({qualified name: [parameter, ...]}, {qualified name: (re-export, ...)}, {enum: {member: value}})"""
    functions, aliases, enums, owner = {}, {}, {}, None
    for line in DATA.read_text().splitlines():
        if line.startswith("#") or not line.strip():
            continue
        line, _, also = line.partition("   # also ")
        if line.startswith("class "):
            owner = line.removeprefix("class ").strip()
            aliases[owner] = tuple(also.split(", ")) if also else ()
        elif line.startswith("enum "):
            name, _, members = line.removeprefix("enum ").partition(": ")
            enums[name] = {m: int(v) for m, v in (item.split("=") for item in members.strip().split(", "))}
            aliases[name] = tuple(also.split(", ")) if also else ()
        else:
            name, _, rest = line.strip().partition("(")
            name = f"{owner}.{name}" if line.startswith(" ") else name
            functions[name] = split(rest.rsplit(")", 1)[0])
            if not line.startswith(" "):
                aliases[name] = tuple(also.split(", ")) if also else ()
    return functions, aliases, enums


def parameters(function):
    """A signature of ours in the same form."""
    parts, star = [], False
    for p in inspect.signature(function).parameters.values():
        if p.kind is p.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        if p.kind is p.VAR_POSITIONAL:
            star = True
        prefix = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        parts.append(prefix + p.name + ("" if p.default is p.empty else "=" + default_text(p.default)))
    return parts


def default_text(value):
    text = repr(value)
    enum = re.fullmatch(r"<(\w+\.\w+): -?\d+>", text)  # an enum's member
    return enum[1] if enum else text


def differences(theirs, ours):
    """Sentences; empty when a call written for theirs means the same for ours. `...` in theirs stands for any default."""
    found = []
    name = lambda p: p.partition("=")[0]  # noqa: E731
    order = [name(p) for p in theirs]
    mine = [name(p) for p in ours]
    found += [f"lacks {n}" for n in order if n not in mine]
    found += [f"adds {p}" for p in ours if name(p) not in order]
    shared = [n for n in mine if n in order]
    if shared != [n for n in order if n in mine]:
        found.append(f"order: {', '.join(shared)} instead of {', '.join(n for n in order if n in mine)}")
    text = {name(p): p for p in ours}
    for p in theirs:
        if name(p) in text and text[name(p)] != p and not p.endswith("=..."):
            found.append(f"{text[name(p)]} instead of {p}")
    return found
