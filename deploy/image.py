#!/usr/bin/env python3
"""image.py OUT.tar NAME:TAG ROOT... [--entrypoint JSON] [--cmd JSON] [--user UID] [--gzip] [--limit-mb N]

A container image of one layer from the folder ROOT, as a tarball that `ctr images import`,
`podman load`, `skopeo copy oci-archive:` and `docker load` read. Nothing is fetched. The same folder
gives the same bytes: everything belongs to root, is as old as the epoch, and comes in order.

ROOT is FOLDER, for this machine's architecture, or ARCH=FOLDER. Of several, each for its architecture,
becomes one image for all (without what `docker load` needs).
"""
import argparse
import gzip
import hashlib
import io
import json
import os
import platform
import sys
import tarfile

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"


def layer_of(root):
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for folder, folders, files in os.walk(root):
            folders.sort()
            names = files + [name for name in folders if os.path.islink(os.path.join(folder, name))]
            for path in [folder] + [os.path.join(folder, name) for name in sorted(names)]:
                if path != root:
                    tar.add(path, arcname=os.path.relpath(path, root), recursive=False, filter=anonymous)
    return layer.getvalue()


def anonymous(info):
    info.uid = info.gid = info.mtime = 0
    info.uname = info.gname = ""
    return info


class Archive:
    """The tarball, whose blobs are named by what they hold."""

    def __init__(self, path):
        self.tar = tarfile.open(path, "w", format=tarfile.PAX_FORMAT)

    def add(self, path, data):
        info = tarfile.TarInfo(path)
        info.size = len(data)
        self.tar.addfile(info, io.BytesIO(data))

    def blob(self, media_type, data):
        digest = hashlib.sha256(data).hexdigest()
        self.add("blobs/sha256/" + digest, data)
        return {"mediaType": media_type, "digest": "sha256:" + digest, "size": len(data)}


    def close(self, manifest, annotations):
        """The manifest of all is what the layout's only name leads to."""
        self.add("index.json", encode({"schemaVersion": 2, "manifests": [manifest | {"annotations": annotations}]}))
        self.add("oci-layout", encode({"imageLayoutVersion": "1.0.0"}))
        self.tar.close()


def add_image(archive, architecture, root, options):
    """Returns its manifest and the blobs of its config and layer."""
    layer = layer_of(root)
    packed = gzip.compress(layer, 6, mtime=0) if options.gzip else layer
    config = {
        "architecture": architecture,
        "os": "linux",
        "config": {"Env": ["PATH=/usr/local/bin:/usr/bin:/bin"], "User": options.user,
                   "Entrypoint": options.entrypoint, "Cmd": options.cmd, "WorkingDir": "/"},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]},
    }
    layer_blob = archive.blob(LAYER + ("+gzip" if options.gzip else ""), packed)
    config_blob = archive.blob(CONFIG, encode(config))
    manifest = archive.blob(MANIFEST, encode({"schemaVersion": 2, "mediaType": MANIFEST,
                                              "config": config_blob, "layers": [layer_blob]}))
    print(f"{options.name} {architecture}: {len(layer) / 1e6:.1f} MB, {len(packed) / 1e6:.1f} MB packed, "
          f"{manifest['digest']}")
    if options.limit_mb and len(layer) > options.limit_mb * 1e6:
        sys.exit(f"image: {options.name} {architecture} is larger than {options.limit_mb} MB")
    return manifest, config_blob, layer_blob


def write(options):
    archive = Archive(options.out)
    roots = [root.partition("=")[::2] if "=" in root else (ARCHITECTURES[platform.machine()], root)
             for root in options.roots]
    images = [add_image(archive, architecture, root, options) for architecture, root in roots]
    manifest, config_blob, layer_blob = images[0]
    if len(images) > 1:
        manifests = [image[0] | {"platform": {"architecture": root[0], "os": "linux"}}
                     for image, root in zip(images, roots)]
        manifest = archive.blob(INDEX, encode({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests}))
    else:
        # For `docker load`.
        archive.add("manifest.json", encode([{"Config": path_of(config_blob), "RepoTags": [options.name],
                                              "Layers": [path_of(layer_blob)]}]))
    archive.close(manifest, {"io.containerd.image.name": full_name(options.name),
                             "org.opencontainers.image.ref.name": options.name.rpartition(":")[2]})


def full_name(name):
    """As container engines complete a name: without a registry it is Docker Hub's."""
    first, slash, _ = name.partition("/")
    if not slash:
        return "docker.io/library/" + name
    if "." in first or ":" in first or first == "localhost":
        return name
    return "docker.io/" + name


def encode(value):
    return json.dumps(value, sort_keys=True).encode()


def path_of(blob):
    return "blobs/sha256/" + blob["digest"].partition(":")[2]


def main():
    parser = argparse.ArgumentParser()
    for name in "out", "name":
        parser.add_argument(name)
    parser.add_argument("roots", metavar="root", nargs="+")
    parser.add_argument("--entrypoint", type=json.loads, default=[])
    parser.add_argument("--cmd", type=json.loads, default=[])
    parser.add_argument("--user", default="0:0")
    parser.add_argument("--gzip", action="store_true")
    parser.add_argument("--limit-mb", type=float)
    write(parser.parse_args())


if __name__ == "__main__":
    main()
