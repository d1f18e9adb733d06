#!/bin/sh
# Usage: backup.sh FOLDER COUNT. Dumps the database at DATABASE_URL into the folder, and keeps the newest dumps.
set -eu
folder=$1
count=$2
new="$folder/voucherd-$(date -u +%Y%m%dT%H%M%SZ).dump"
umask 077
trap 'rm -f "$new.part"' EXIT
pg_dump --dbname="$DATABASE_URL" --format=custom --compress=5 --no-owner --no-privileges --file="$new.part"
# Half a dump would be found out only on the day when it is needed.
pg_restore --list "$new.part" >/dev/null
sync "$new.part"
mv "$new.part" "$new"
# Names tell the time, so the order of names is that of age. Nothing is removed unless a new dump is there.
ls -1 "$folder" | grep -E '^voucherd-[0-9TZ]+\.dump$' | head -n "-$count" | while read -r old; do
  rm -- "$folder/$old"
done
