#!/bin/sh
# Makes the folder `secrets` beside this file, once: passwords, the settings that hold them, and the master key.
# Back up secrets/master.key elsewhere before you import your first code: without it the codes are lost.
set -eu
cd "$(dirname "$0")"
umask 077
# Compose shows a container the file as it is here. The folder keeps others out; the files must be legible for the
# account in the container, which has another number.
mkdir secrets
random() { od -An -v -tx1 -N32 /dev/urandom | tr -d ' \n'; }
owner=$(random)
service=$(random)
random >secrets/postgres_password
printf %s "$owner" >secrets/owner_password
printf %s "$service" >secrets/service_password
random >secrets/master.key
cat >secrets/service.toml <<END
database_url = "postgresql://voucherd_service:$service@db/voucherd"
metrics_token = "$(random)"
END
cat >secrets/owner.toml <<END
database_url = "postgresql://voucherd:$owner@db/voucherd"
END
chmod 444 secrets/*
