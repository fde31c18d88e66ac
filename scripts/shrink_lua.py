# SPDX-License-Identifier: MIT
"""Makes a script of Lua cheaper to run, without changing what it does.

Lua 5.1 makes every function of a script anew whenever it runs, and looks for each local that a function shares with
those around it in a list. So functions that nobody mentions are left out, and constants stand where they are used:

* `local NAME = NUMBER` (several names too; sums and products of numbers and of earlier such names; `math.huge`), where
  NAME is in capitals: the number is put in the place of NAME to the end of its block. Nobody assigns to such a name.
* `local function NAME` that is mentioned nowhere between its end and the end of its block.
* `NAME = NAME` in a table, where such a function is all that NAME is, and NAME stands nowhere in the script behind a
  dot or in quotes.

Each is told by words alone, so what is in doubt stays.
"""

import re

TOKEN = re.compile(r"""(?P<space>\s+|--[^\n]*)|(?P<string>'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")"""
                   r"""|(?P<number>\d+(?:\.\d+)?(?:[eE]\d+)?)|(?P<name>[A-Za-z_]\w*)"""
                   r"""|(?P<mark>\.\.\.|\.\.|==|~=|<=|>=|[-+*/%^\#<>=(){}\[\];:,.])""")
OPENS, CLOSES = {"function", "if", "do", "repeat"}, {"end", "until"}
CONSTANT = re.compile(r"[A-Z][A-Z0-9_]*$")
OPERATORS = "+-*"


class Unclear(ValueError):
    """A text that is not Lua as the scripts have it."""


def tokens_of(text):
    """The words of a script, without spaces and comments."""
    tokens, at = [], 0
    while at < len(text):
        match = TOKEN.match(text, at)
        if not match or text.startswith(("--[[", "--[=", "[["), at):
            raise Unclear(f"line {text.count(chr(10), 0, at) + 1}: {text[at:at + 20]!r}")
        if match.lastgroup != "space":
            tokens.append(match.group())
        at = match.end()
    return tokens


def is_name(token):
    return token[0].isalpha() or token[0] == "_"


def ends_of_blocks(tokens):
    """Of each place, where the block ends that it is in: the place of the word that closes it, or of the end."""
    ends, open_blocks, block = [len(tokens)] * len(tokens), [], []
    for at, token in enumerate(tokens):
        if token in CLOSES or token in ("else", "elseif"):
            for inside in block:
                ends[inside] = at
            if not open_blocks:
                raise Unclear("a block ends that has not begun")
            block = open_blocks.pop() if token in CLOSES else []
        block.append(at)
        if token in OPENS:
            open_blocks.append(block)
            block = []
    if open_blocks:
        raise Unclear("a block has no end")
    return ends


def places_of_names(tokens):
    """Where each name stands as a variable, or as a key of a table, which is not told apart."""
    places = {}
    for at, token in enumerate(tokens):
        if is_name(token) and (at == 0 or tokens[at - 1] not in (".", ":")):
            places.setdefault(token, []).append(at)
    return places


# ---- constants ----

def value_at(tokens, at, known):
    """The words of the number that is written at `at`, or None; and what comes after it."""
    words = []
    if tokens[at:at + 3] == ["math", ".", "huge"]:
        return ["1e999"], at + 3
    while at < len(tokens):
        before = words[-1] if words else "("
        operand = known.get(tokens[at]) or ([tokens[at]] if tokens[at][0].isdigit() else None)
        if operand and before in OPERATORS + "(":
            words += operand
        elif tokens[at] in OPERATORS and before not in OPERATORS + "(":
            words.append(tokens[at])
        else:
            break
        at += 1
    if not words or words[-1] in OPERATORS:
        return None, at
    return words if len(words) == 1 else ["("] + words + [")"], at


def constants_at(tokens, at, known):
    """What `local A, B = 1, 2` at `at` says, and where it ends; nothing where it is something else."""
    names, values, i = [], [], at + 1
    while i < len(tokens) and CONSTANT.match(tokens[i]):
        names.append(tokens[i])
        i += 2
    i -= 1
    while names and i < len(tokens) and tokens[i] == ("," if values else "="):
        words, i = value_at(tokens, i + 1, known)
        values.append(words)
    ends = i >= len(tokens) or is_name(tokens[i]) and tokens[i] not in ("and", "or")
    if not names or len(names) != len(values) or None in values or not ends:
        return {}, at
    return dict(zip(names, values)), i


def with_constants(tokens):
    """Each from its definition to the end of its block: an inner one of the same name ends what the outer one says."""
    ends, out, scopes, at = ends_of_blocks(tokens), [], [], 0
    while at < len(tokens):
        while scopes and scopes[-1][0] <= at:
            scopes.pop()
        known = scopes[-1][1] if scopes else {}
        values, after = constants_at(tokens, at, known) if tokens[at] == "local" else ({}, at)
        if values:
            scopes.append((ends[at], {**known, **values}))
            at = after
            continue
        is_key = at > 0 and tokens[at - 1] in (".", ":")
        is_key = is_key or at > 0 and tokens[at - 1] in ("{", ",") and tokens[at + 1:at + 2] == ["="]
        out += known[tokens[at]] if tokens[at] in known and not is_key else [tokens[at]]
        at += 1
    return out


# ---- functions ----

def without_functions(tokens):
    """Those that are mentioned by nobody but themselves."""
    ends, places, out, at = ends_of_blocks(tokens), places_of_names(tokens), [], 0
    while at < len(tokens):
        if tokens[at:at + 2] == ["local", "function"]:
            after = ends[at + 3] + 1 if at + 3 < len(tokens) else at
            if not any(after <= place < ends[at] for place in places[tokens[at + 2]]):
                at = after
                continue
        out.append(tokens[at])
        at += 1
    return out


def without_fields(tokens):
    """Those of tables that no other word of the script can mean."""
    meant = {tokens[i] for i in range(1, len(tokens)) if tokens[i - 1] in (".", ":")}
    meant |= {token[1:-1] for token in tokens if token[0] in "'\""}
    functions = {tokens[i + 2] for i in range(len(tokens)) if tokens[i:i + 2] == ["local", "function"]}
    out, at = [], 0
    while at < len(tokens):
        name = tokens[at]
        if (name in functions and name not in meant and tokens[at + 1:at + 3] == ["=", name]
                and tokens[at - 1] in ("{", ",") and tokens[at + 3] in (",", "}")):
            at += 4 if tokens[at + 3] == "," else 3
            continue
        out.append(name)
        at += 1
    return out


# ---- the whole ----

def text_of(tokens):
    """Statements need no separators in Lua but where one that begins with a bracket follows another: there is none."""
    lines, line = [], ""
    for i, token in enumerate(tokens):
        glue = line and (line[-1].isalnum() or line[-1] in "_'\".") and (token[0].isalnum() or token[0] in "_'\".")
        glue = glue or token == ".." or line[-2:] == ".." or token == "-" and line[-1:] == "-"
        line += (" " if glue else "") + token
        if len(line) > 100 and token in ("end", "then", "do", "else") and tokens[i + 1:i + 2] not in ([")"], [","]):
            lines.append(line)
            line = ""
    return "\n".join(lines + [line]) + "\n"


def shrink(text):
    tokens = with_constants(tokens_of(text))
    before = None
    while before != tokens:
        before = tokens
        tokens = without_fields(without_functions(tokens))
    return text_of(tokens)
