#!/bin/sh
# Runs in the container of PostgreSQL when its database is new: the owner of the tables, and the roles of the service.
set -eu
psql --no-psqlrc --set=ON_ERROR_STOP=1 --username postgres --dbname postgres \
  --set=owner="$(cat /run/secrets/owner_password)" --set=service="$(cat /run/secrets/service_password)" <<'END'
CREATE ROLE voucherd LOGIN PASSWORD :'owner';
CREATE ROLE voucherd_tenant NOLOGIN;
CREATE ROLE voucherd_service LOGIN BYPASSRLS PASSWORD :'service';
GRANT voucherd_tenant TO voucherd WITH INHERIT FALSE, SET TRUE;
GRANT voucherd_tenant TO voucherd_service WITH INHERIT FALSE, SET TRUE;
CREATE DATABASE voucherd OWNER voucherd;
END
