#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Record the files of an installation, and remove those that the one before it had and this one has not.
# usage: manifest.sh PREFIX PART <files, a path below PREFIX on each line
#
# A part is what one installer puts there: CMake the library, ci/install-tree the tree. Its record is
# PREFIX/share/xccl/manifest/PART. A file that is in no record is never touched.
set -eu
LC_ALL=C
export LC_ALL

[ $# -eq 2 ] || {
    echo "usage: manifest.sh PREFIX PART <list" >&2
    exit 2
}
prefix=$1 part=$2
records=$prefix/share/xccl/manifest
mkdir -p "$records"
new=$records/.$part.new
kept=$records/.$part.kept
trap 'rm -f "$new" "$kept"' EXIT

# Folders of xccl's own go with their last file.
remove_empty() { # folder below the prefix
    folder=$1
    while case $folder in *[xX]ccl*) rmdir "$prefix/$folder" 2>/dev/null ;; *) false ;; esac do
        folder=${folder%/*}
    done
}

remove() { # paths below the prefix, on standard input
    while IFS= read -r file; do
        case /$file/ in
        //* | */../*)
            echo "manifest: left alone, as it is not below $prefix: '$file' of $records/$part" >&2
            continue
            ;;
        esac
        [ ! -d "$prefix/$file" ] || [ -L "$prefix/$file" ] || continue # not what was installed
        rm -f "$prefix/$file"
        remove_empty "${file%/*}"
    done
}

sort -u >"$new"
if [ -e "$records/$part" ]; then
    # A file may have gone over to another part.
    for record in "$records"/* "$new"; do
        [ "$record" = "$records/$part" ] || cat "$record"
    done | sort -u >"$kept"
    sort -u "$records/$part" | comm -23 - "$kept" | remove
fi
mv "$new" "$records/$part"
