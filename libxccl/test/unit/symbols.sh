#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Compare what a shared library exports with a list: symbols.sh <library> <list>
set -eu
export LC_ALL=C

[ -s "$2" ] || { echo "$2 is missing or empty" >&2; exit 1; }
found=$(mktemp)
trap 'rm -f "$found"' EXIT
nm -D --defined-only "$1" | awk '{ sub(/@.*/, "", $3); print $3 }' | sort >"$found"
if ! sort "$2" | diff -u - "$found"; then
    echo "$1 does not export what $2 lists (- listed, + exported)" >&2
    exit 1
fi
echo "$(wc -l <"$found") symbols of $1 are those of $2"
