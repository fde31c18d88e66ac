#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: same_hash.sh SOURCE-ROOT
#
# The engine decides the same whoever compiled it and how: 200 random streams have one hash under gcc -O0 and clang -O2.
# Where one of the compilers is missing it says so and is skipped (77); in CI that is a failure.
set -eu
cd "$1"
for compiler in gcc clang; do
    command -v "$compiler" >/dev/null && continue
    echo "$compiler is not installed: ./dev deps lint"
    [ "${CI:-}" = true ] && exit 1
    exit 77
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

hash_of() {
    "$@" -std=c11 -D_GNU_SOURCE -Iinclude -Isrc -Itests src/base/*.c src/core/*.c tests/support/stream.c \
        tests/support/stream_rules.c tests/property/stream_hash.c -o "$folder/$1" && "$folder/$1"
}

hash_of gcc -O0 >"$folder/gcc.hash" &
hash_of clang -O2 >"$folder/clang.hash"
wait $!
cmp "$folder/gcc.hash" "$folder/clang.hash"
