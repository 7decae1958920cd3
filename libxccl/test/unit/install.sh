#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Install, move the tree, and build a program against it with pkg-config and with CMake:
# install.sh <build folder> <C compiler> <version>
set -eu
build=$1 cc=$2 version=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --install "$build" --prefix "$work/first" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
mv "$work/first" "$work/moved"
cat >"$work/main.c" <<'END'
#include <xccl/xccl.h>

int main(void)
{
    int version = 0;
    return (xcclGetVersion(&version) == xcclSuccess && version == XCCL_VERSION_CODE) ? 0 : 1;
}
END

pc=$(find "$work/moved" -name xccl.pc)
[ -n "$pc" ] || { echo "xccl.pc was not installed" >&2; exit 1; }
libs=$(dirname "$(dirname "$pc")")
checked=0
if command -v pkg-config >/dev/null; then
    PKG_CONFIG_PATH=$(dirname "$pc")
    export PKG_CONFIG_PATH
    [ "$(pkg-config --modversion xccl)" = "$version" ] ||
        { echo "xccl.pc says $(pkg-config --modversion xccl), not $version" >&2; exit 1; }
    # shellcheck disable=SC2046 # a list of flags
    "$cc" "$work/main.c" -o "$work/by-pkg-config" $(pkg-config --cflags --libs xccl)
    LD_LIBRARY_PATH=$libs "$work/by-pkg-config"
    if pkg-config --exists xccl-mpi; then
        # shellcheck disable=SC2046 # a list of flags
        "$cc" "$work/main.c" -o "$work/in-front" $(pkg-config --cflags --libs xccl-mpi xccl)
        LD_LIBRARY_PATH=$libs "$work/in-front"
    fi
    checked=$((checked + 1))
fi

cat >"$work/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.20)
project(consumer C)
find_package(Xccl $version EXACT REQUIRED)
add_executable(by-cmake main.c)
target_link_libraries(by-cmake PRIVATE Xccl::xccl)
if(TARGET Xccl::xccl-mpi)
  target_link_libraries(by-cmake PRIVATE Xccl::xccl-mpi)
endif()
END
{ cmake -S "$work" -B "$work/b" -DCMAKE_C_COMPILER="$cc" -DCMAKE_PREFIX_PATH="$work/moved" &&
    cmake --build "$work/b"; } >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
"$work/b/by-cmake"
checked=$((checked + 1))
if grep -rIl "$work/first" "$work/moved"; then
    echo "these files name the prefix that they were installed to" >&2
    exit 1
fi
echo "built and ran against the moved tree in $checked ways"
