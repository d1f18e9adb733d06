#!/bin/sh
# Makes the front door's map of keys from the lists of the cells, and reloads the front door if the map has changed.
#
#   join-map.sh FOLDER MAP [COMMAND …]
#
# FOLDER has a file NAME.list of each cell, as `voucherd key map NAME` prints it. A list that is not whole, and a key
# that is active in two cells, leave the map as it was and exit with 1. COMMAND reloads the front door.
set -eu
LC_ALL=C
export LC_ALL
folder=$1 map=$2
shift 2

for list in "$folder"/*.list; do
    lines=$(grep -c -v '^#' "$list" || true)
    if [ "$(tail -n 1 "$list")" != "# $lines keys" ]; then
        echo "join-map: $list is not whole" >&2
        exit 1
    fi
done

new=$(mktemp "$map.XXXXXX")
trap 'rm -f "$new"' EXIT
# A company that has moved is inactive in the cell that it left: there its keys come second, and are passed over.
cat "$folder"/*.list | grep -v '^#' | sort -k 1,1 -k 3,3 | awk '
    $1 == key && $3 == "active" && $2 != cell {
        print "join-map: a key is active in both " cell " and " $2 > "/dev/stderr"
        twice = 1
        exit
    }
    $1 != key { key = $1; cell = $2; print key, cell }
    END { exit twice }' > "$new"

chmod 0640 "$new"
cmp -s "$new" "$map" || mv "$new" "$map"
# What the front door has read is kept beside it, so that a reload that failed is tried again.
if [ $# -gt 0 ] && ! cmp -s "$map" "$map.loaded"; then
    "$@"
    cp -p "$map" "$map.loaded"
fi
