#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What scripts/shrink_lua.py leaves out of a script, what it leaves in, and what it does not take for Lua."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))

from shrink_lua import Unclear, shrink, tokens_of  # noqa: E402

SHRUNK = [
    ("comments and spaces", "-- a\nlocal a  =  f() -- b\nreturn a", "local a = f() return a"),
    ("a comment's mark in a text", "return '--', \"it's\"", "return '--', \"it's\""),
    ("a minus of a minus", "return a - -b .. 1 .. c", "return a - -b .. 1 .. c"),
    ("a constant", "local A = 1 return A", "return 1"),
    ("several constants", "local A, B = 1, 2 return B - A", "return 2 - 1"),
    ("a constant of constants", "local A = 3 local B = 2 * A return B * B", "return (2 * 3) * (2 * 3)"),
    ("infinity", "local NEVER = math.huge return NEVER", "return 1e999"),
    ("no key and no field", "local A = 1 return { A = A, b = c.A, [A] = 2 }", "return { A = 1, b = c.A, [1] = 2 }"),
    ("an inner constant of the same name", "local A = 1 do local A = 2 f(A) end return A", "do f(2) end return 1"),
    ("a constant ends with its block", "do local A = 1 f(A) end return A", "do f(1) end return A"),
    ("a constant ends with its branch", "if x then local A = 1 f(A) else f(A) end return A",
     "if x then f(1) else f(A) end return A"),
    ("a value that is calculated", "local A = 1 + f() return A", "local A = 1 + f() return A"),
    ("a name not in capitals", "local a = 1 return a", "local a = 1 return a"),
    ("a table", "local A = { 1 } return A", "local A = { 1 } return A"),
    ("a function that nobody mentions", "local function f() return 1 end return 2", "return 2"),
    ("one that only itself mentions", "local function f() return f() end return 2", "return 2"),
    ("one that only such a one mentions", "local function f() end local function g() f() end return 2", "return 2"),
    ("one with blocks in it",
     "local function f() if a then while b do c() end else repeat d() until e end end return 2", "return 2"),
    ("one that is mentioned later", "local function f() end return f", "local function f() end return f"),
    ("one that a function mentions", "local function f() end function g() f() end",
     "local function f() end function g() f() end"),
    ("a mention of another block's", "do local function f() end end return f", "do end return f"),
    ("a field of that name is no mention", "local function f() end return a.f, a:f()", "return a.f, a:f()"),
    ("a field that nobody means", "local function f() end return { f = f, a = 1 }", "return { a = 1 }"),
    ("the last field", "local function f() end return { a = 1, f = f }", "return { a = 1, }"),
    ("a field that somebody means", "local function f() end k.f() return { f = f }",
     "local function f() end k.f() return { f = f }"),
    ("a field that stands in quotes", "local function f() end v('f') return { f = f }",
     "local function f() end v('f') return { f = f }"),
    ("a field that is no function of the script", "return { f = f }", "return { f = f }"),
]
UNCLEAR = ["return [[ a ]]", "--[[ a ]]", "return 'a", "if a then b()", "return a @ b", "end return 1"]


class ShrinkLua(unittest.TestCase):
    def test_shrunk(self):
        for why, text, want in SHRUNK:
            with self.subTest(why):
                self.assertEqual(tokens_of(shrink(text)), tokens_of(want))

    def test_unclear(self):
        for text in UNCLEAR:
            with self.subTest(text), self.assertRaises(Unclear):
                shrink(text)


if __name__ == "__main__":
    unittest.main()
