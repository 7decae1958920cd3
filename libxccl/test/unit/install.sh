#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Install, move the tree, and build a program against it with pkg-config and with CMake:
# install.sh <build folder> <C compiler> <version>
set -eu
build=$1 cc=$2 version=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

install() {
    cmake --install "$build" --prefix "$work/first" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
}

# Over an older installation, which had more files, in a prefix that others use as well.
check_replacement() {
    record=$work/first/share/xccl/manifest/library
    (cd "$work/first" && xargs ls -d <share/xccl/manifest/library >/dev/null) || exit 1
    cp "$record" "$work/record"
    mkdir -p "$work/first/lib/xccl/gone"
    for file in lib/libxccl.so.0.0.1 lib/xccl/gone/one share/xccl/of-the-tree ../outside; do
        echo "$file" >>"$record"
        echo old >"$work/first/$file"
    done
    echo share/xccl/of-the-tree >"$work/first/share/xccl/manifest/tree"
    echo own >"$work/first/lib/of-others"
    install
    cmp "$record" "$work/record" || exit 1
    for file in lib/libxccl.so.0.0.1 lib/xccl/gone; do
        [ ! -e "$work/first/$file" ] || { echo "$file of the older installation was left" >&2; exit 1; }
    done
    for file in lib/of-others share/xccl/of-the-tree ../outside; do
        [ -e "$work/first/$file" ] || { echo "$file was removed, which is not the library's" >&2; exit 1; }
    done
    grep -q 'left alone.*\.\./outside' "$work/log" || { echo "the wrong line of the record was not told" >&2; exit 1; }
}

# Tools in Python start from bytecode, also where the installation was copied, and write none.
check_bytecode() {
    python=$(find "$work/moved" -path '*/xccl/python' -type d)
    if [ -z "$python" ] || ! command -v python3 >/dev/null; then
        return 0
    fi
    grep -q 'python/xccl_doctor/__pycache__/main\..*\.pyc$' "$work/moved/share/xccl/manifest/library" ||
        { echo "the record does not name the bytecode" >&2; exit 1; }
    find "$python" -name '*.py' -exec touch {} +
    find "$python" -type f | sort >"$work/before"
    PYTHONVERBOSE=1 "$work/moved/bin/xccl-doctor" --version >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
    if ! grep -q "matches $python/xccl_doctor/main\.py" "$work/log" || grep "code object from '$python/.*[.]py'" "$work/log"; then
        echo "xccl-doctor compiled its modules" >&2
        exit 1
    fi
    find "$python" -type f | sort | cmp - "$work/before" || exit 1
}

install
check_replacement
mv "$work/first" "$work/moved"
check_bytecode
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
        "$cc" "$work/main.c" -o "$work/in-front" $(pkg-config --cflags --libs xccl-mpi)
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
  add_executable(in-front main.c)
  target_link_libraries(in-front PRIVATE Xccl::xccl-mpi)
endif()
END
{ cmake -S "$work" -B "$work/b" -DCMAKE_C_COMPILER="$cc" -DCMAKE_PREFIX_PATH="$work/moved" &&
    cmake --build "$work/b"; } >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
"$work/b/by-cmake"
if [ -x "$work/b/in-front" ]; then
    "$work/b/in-front"
fi
checked=$((checked + 1))
if grep -rIl "$work/first" "$work/moved"; then
    echo "these files name the prefix that they were installed to" >&2
    exit 1
fi
echo "built and ran against the moved tree in $checked ways"
