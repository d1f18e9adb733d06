#!/bin/bash
# Builds the image localhost/voucherd:VERSION with buildah, from Debian's packages, the locked wheels and our own wheel in
# dist/ (`make image` makes that first). No registry is asked, and no compiler is in the image.
#
#   PYTHON=…   a Python 3.11 with pip that fetches the wheels; by default the one of .venv
#   MIRROR=…   where mmdebstrap takes Debian from; by default the mirror that it chooses
#   TARGET=…   by default containers-storage, as podman reads it; oci-archive:FILE writes a file instead
set -euo pipefail
cd "$(dirname "$0")/../.."

PYTHON=${PYTHON:-.venv/bin/python}
MIRROR=${MIRROR:-}
SUITE=bookworm
wheel=$(ls -t dist/voucherd-*.whl | head -n 1)
version=$(basename "$wheel" | cut -d- -f2)
TARGET=${TARGET:-containers-storage:localhost/voucherd:$version}
export BUILDAH_ISOLATION=${BUILDAH_ISOLATION:-chroot}

for program in buildah mmdebstrap; do
  command -v "$program" >/dev/null || { echo "Missing here: $program (apt-get install buildah mmdebstrap)" >&2; exit 1; }
done

work=$(mktemp -d)
container=
clean() {
  [ -z "$container" ] || buildah rm "$container" >/dev/null
  rm -rf "$work"
}
trap clean EXIT

# The wheels are fetched outside, by whatever pip is set to here, and checked against the lock again inside.
mkdir "$work/wheels"
"$PYTHON" -m pip download --quiet --disable-pip-version-check --require-hashes --only-binary :all: \
  --python-version 3.11 --dest "$work/wheels" -r requirements-production.lock
cp "$wheel" requirements-production.lock "$work/wheels/"

# python3-venv is needed for a moment and removed below; the image has Python, time zones and certificates.
mmdebstrap --quiet --variant=minbase --include=python3-minimal,libpython3-stdlib,python3-venv,ca-certificates,tzdata \
  --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
  --dpkgopt='path-exclude=/usr/share/locale/*' "$SUITE" "$work/root.tar" ${MIRROR:+"$MIRROR"}

container=$(buildah from scratch)
buildah add --quiet "$container" "$work/root.tar" /
buildah run --volume "$work/wheels:/wheels:ro" "$container" -- /bin/sh -eu -c "
  python3 -m venv /opt/voucherd
  pip='/opt/voucherd/bin/python -m pip --disable-pip-version-check'
  \$pip install --quiet --no-cache-dir --no-index --find-links /wheels --require-hashes -r /wheels/requirements-production.lock
  \$pip install --quiet --no-cache-dir --no-index --no-deps /wheels/$(basename "$wheel")
  \$pip uninstall --quiet --yes pip setuptools
  apt-get purge --quiet --yes --auto-remove python3-venv >/dev/null
  rm -rf /var/lib/apt/lists /var/cache/apt /var/log/* /usr/share/python-wheels
  groupadd --gid 10001 voucherd
  useradd --uid 10001 --gid 10001 --no-create-home --home-dir /data --shell /usr/sbin/nologin voucherd
  install -d -o voucherd -g voucherd -m 0700 /data
"
buildah config --user 10001:10001 --workingdir /data --volume /data --port 8080 \
  --env PATH=/opt/voucherd/bin:/usr/bin:/bin --env PYTHONDONTWRITEBYTECODE=1 --env LANG=C.UTF-8 \
  --env VOUCHERD_DATA=/data --env VOUCHERD_HOST=0.0.0.0 --env VOUCHERD_LOG_FORMAT=json \
  --entrypoint '["voucherd"]' --cmd serve --stop-signal SIGTERM \
  --label org.opencontainers.image.title=voucherd --label "org.opencontainers.image.version=$version" \
  --label org.opencontainers.image.licenses=Apache-2.0 "$container"
buildah commit --quiet "$container" "$TARGET"
echo "$TARGET"
