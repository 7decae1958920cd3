# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# Shared by the scripts of ci/; sourced after `set -eu`, from any folder.
#
# No variable here begins with XCCL_: those belong to the library, which refuses names unknown to it.

top=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck disable=SC2034 # the scripts use them
build_dir=${BUILD_DIR:-$top/build}
# shellcheck disable=SC2034
venv=$top/.venv

say() {
    printf '%s: %s\n' "${0##*/}" "$*"
}

die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

have() {
    command -v "$1" >/dev/null 2>&1
}

cores() {
    getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2
}
