#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: same_day.sh SOURCE-ROOT
#
# A seed is one day, whoever compiled it and how: the days of 20 seeds with every fault have the same hashes under
# gcc -O0 and clang -O2. Where one of the compilers is missing it says so and is skipped (77); in CI that is a failure.
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

sources="$(ls src/base/*.c src/core/*.c src/plan/*.c src/config/*.c src/trace/*.c src/jobs/*.c src/simulate/day*.c)
src/net/clock.c src/net/http.c src/simulate/answer.c src/simulate/behaviour.c src/simulate/capacity.c
src/simulate/enforcer.c src/simulate/random.c src/simulate/store.c src/simulate/summary.c tests/simulation/day_hash.c"

hashes_of() {
    mkdir "$folder/$1"
    for source in $sources; do
        echo "-c $source -o $folder/$1/$(echo "$source" | tr / _).o"
    done | xargs -L 1 "$@" -std=c11 -D_GNU_SOURCE '-DRN_PROVIDER_DIR="share"' -Iinclude -Isrc
    "$1" "$folder/$1"/*.o -lyaml -lcrypto -luv -o "$folder/$1/day" && "$folder/$1/day" examples/day.yaml 20
}

hashes_of gcc -O0 >"$folder/gcc.hash" &
hashes_of clang -O2 >"$folder/clang.hash"
wait $!
cmp "$folder/gcc.hash" "$folder/clang.hash"
[ "$(wc -l <"$folder/gcc.hash")" -eq 20 ]
