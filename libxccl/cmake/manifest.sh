#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Record the files of an installation, and remove those that the one before it had and this one has not.
# usage: manifest.sh PREFIX PART <files, a path below PREFIX on each line
#        manifest.sh --remove PREFIX: all parts, and the folders that are empty then
#
# A part is what one installer puts there: CMake the library, ci/install-tree the tree. Its record is
# PREFIX/share/xccl/manifest/PART. A file that is in no record is never touched.
set -eu
LC_ALL=C
export LC_ALL
umask 022 # as the files that are recorded

[ $# -eq 2 ] || {
    echo "usage: manifest.sh PREFIX PART <list" >&2
    exit 2
}
removes=no
if [ "$1" = --remove ]; then
    removes=yes
    prefix=$2 part=
else
    prefix=$1 part=$2
fi
records=$prefix/share/xccl/manifest
if [ "$removes" = yes ]; then
    fault=
    [ -d "$records" ] || fault="is missing"
    [ -n "$fault" ] || [ -n "$(ls "$records")" ] || fault="names no part"
    if [ -n "$fault" ]; then
        echo "manifest: $records $fault: xccl is not installed there; where an installation was interrupted, run it again" \
            "(make install with the same PREFIX), and then this" >&2
        exit 2
    fi
fi
mkdir -p "$records"
new=$records/.$part.new
kept=$records/.$part.kept
trap 'rm -f "$new" "$kept"' EXIT

# When all goes, so do the other folders that it leaves empty. Of a prefix that others use, as /usr/local, those stay that
# a system has empty, too.
remove_all_empty() { # folder below the prefix
    folder=$1
    while :; do
        case $prefix/$folder in
        */[xX]ccl*) ;; # a prefix of its own, or its own folder
        */share/man) return 0 ;;
        "$prefix"/*/*) ;;
        *) return 0 ;;
        esac
        rmdir "$prefix/$folder" 2>/dev/null || return 0
        case $folder in
        */*) folder=${folder%/*} ;;
        *) return 0 ;;
        esac
    done
}

# Folders of xccl's own go with their last file.
remove_empty() { # folder below the prefix
    folder=$1
    while case $folder in *[xX]ccl*) rmdir "$prefix/$folder" 2>/dev/null ;; *) false ;; esac do
        folder=${folder%/*}
    done
}

remove_a_folder() { # folder below the prefix, or empty
    case $removes/$1 in
    */) ;;
    yes/*) remove_all_empty "$1" ;;
    *) remove_empty "$1" ;;
    esac
}

remove() { # paths below the prefix, on standard input, in order
    last= # the folder of the files before
    while IFS= read -r file; do
        case /$file/ in
        //* | */../*)
            echo "manifest: left alone, as it is not below $prefix: '$file' of $records/$part" >&2
            continue
            ;;
        esac
        [ ! -d "$prefix/$file" ] || [ -L "$prefix/$file" ] || continue # not what was installed
        rm -f "$prefix/$file"
        [ "$last" = "${file%/*}" ] || remove_a_folder "$last"
        last=${file%/*}
    done
    remove_a_folder "$last"
}

if [ "$removes" = yes ]; then
    # The records go last: what is interrupted can be run again.
    cat "$records"/* | sort -u >"$new"
    remove <"$new"
    rm -f "$records"/* "$records"/.*.new "$records"/.*.kept
    remove_all_empty share/xccl/manifest
    case $prefix in
    *[xX]ccl*) rmdir "$prefix" 2>/dev/null || : ;;
    esac
    exit 0
fi
sort -u >"$new"
if [ -e "$records/$part" ]; then
    # A file may have gone over to another part.
    for record in "$records"/* "$new"; do
        [ "$record" = "$records/$part" ] || cat "$record"
    done | sort -u >"$kept"
    sort -u "$records/$part" | comm -23 - "$kept" | remove
fi
mv "$new" "$records/$part"
