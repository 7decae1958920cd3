# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# Shared by the scripts of ci/; sourced after `set -eu`, from any folder.

XCCL_TOP=$(cd "$(dirname "$0")/.." && pwd)
XCCL_BUILD_DIR=${XCCL_BUILD_DIR:-$XCCL_TOP/build}
XCCL_VENV=${XCCL_VENV:-$XCCL_TOP/.venv}
export XCCL_TOP XCCL_BUILD_DIR XCCL_VENV

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
