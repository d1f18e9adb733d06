"""The container image: made of Debian's packages and the locked wheels, and run with a root that nobody can write."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tarfile
from pathlib import Path
from typing import Any, Final

import pytest

from tests.anywhere.installed import ROOT
from tests.anywhere.programs import needed
from tests.anywhere.sandbox import UID, refuse_without_root

BUILD: Final = ROOT / "deploy" / "container" / "build.sh"
BUILD_S_MAX: Final = 1800
COMPILERS: Final = ("gcc", "cc", "ld", "make", "pip", "pip3")


def test_the_two_recipes_make_the_same_image() -> None:
    """OP-127: account, settings, entry point and command are told alike to buildah and in the Containerfile."""
    script = BUILD.read_text("utf-8")
    recipe = (BUILD.parent / "Containerfile").read_text("utf-8")
    told = set(re.findall(r"--env ([A-Z_]+=\S+)", script))
    assert {word for word in told if word.startswith("VOUCHERD_")} <= set(re.findall(r"[A-Z_]+=\S+", recipe))
    for words in (f"--user {UID}:{UID}", "--volume /data", "--entrypoint '[\"voucherd\"]'", "--cmd serve"):
        assert words in script, words
    for line in (f"USER {UID}:{UID}", "VOLUME /data", 'ENTRYPOINT ["voucherd"]', 'CMD ["serve"]'):
        assert f"\n{line}\n" in recipe, line
    assert "requirements-production.lock" in script
    assert "requirements-production.lock" in recipe
    checked = subprocess.run(["/bin/bash", "-n", BUILD], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.soak
def test_the_image_is_built_and_runs_read_only_without_rights(tmp_path: Path) -> None:
    """OP-127: it needs the network for Debian's packages, so it is one of the long runs."""
    refuse_without_root()
    needed("apt-get")
    archive = tmp_path / "image.tar"
    env = os.environ | {"TARGET": f"oci-archive:{archive}", "STORAGE_DRIVER": "vfs"}
    subprocess.run(["/usr/bin/make", "-C", ROOT, "image"], env=env, timeout=BUILD_S_MAX, check=True)
    config, root = _unpacked(archive, tmp_path)

    assert (config["User"], config["Entrypoint"], config["Cmd"]) == (f"{UID}:{UID}", ["voucherd"], ["serve"])
    found = {
        path.name
        for folder in ("usr/bin", "usr/local/bin", "opt/voucherd/bin")
        for path in (root / folder).glob("*")
    }
    assert found.isdisjoint(COMPILERS)
    script = (
        f"mount --bind {root} {root}; mount -o remount,bind,ro {root}; mount -t tmpfs tmpfs {root}/tmp;"
        f" exec chroot {root} /usr/bin/setpriv --reuid {UID} --regid {UID} --clear-groups --no-new-privs"
        f" --bounding-set=-all /usr/bin/env -i {' '.join(config['Env'])} voucherd"
    )
    said = [
        subprocess.run(
            ["/usr/bin/unshare", "--mount", "/bin/sh", "-euc", f"{script} {words}"],
            capture_output=True,
            text=True,
            timeout=BUILD_S_MAX,
            check=False,
        )
        for words in ("--version", "migrate")
    ]
    assert said[0].stdout == "voucherd 0.1.0\n", said[0]
    assert "pip install 'voucherd[embedded]'" in said[1].stderr


def _unpacked(archive: Path, folder: Path) -> tuple[dict[str, Any], Path]:
    """The configuration and the files of an image in a file."""
    layout, root = folder / "layout", folder / "root"
    with tarfile.open(archive) as packed:
        packed.extractall(layout, filter="data")

    def blob(digest: str) -> Path:
        return layout / "blobs" / digest.replace(":", "/")

    [listed] = json.loads((layout / "index.json").read_bytes())["manifests"]
    manifest = json.loads(blob(listed["digest"]).read_bytes())
    for layer in manifest["layers"]:
        with tarfile.open(blob(layer["digest"])) as packed:
            packed.extractall(root, filter="tar")
    config: dict[str, Any] = json.loads(blob(manifest["config"]["digest"]).read_bytes())["config"]
    return config, root
