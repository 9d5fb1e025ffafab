#!/usr/bin/env python3
"""image.py OUT.tar NAME:TAG ROOT: a container image of one layer from the folder ROOT.

The docker-archive format, which containerd imports; nothing is fetched.
"""
import hashlib
import io
import json
import sys
import tarfile


def main(out, name, root):
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        tar.add(root, arcname=".", filter=anonymous)
    layer = layer.getvalue()
    digest = hashlib.sha256(layer).hexdigest()
    config = json.dumps({
        "architecture": "amd64",
        "os": "linux",
        "config": {"Cmd": ["/bin/sleep", "1000000"], "Env": ["PATH=/bin"]},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + digest]},
    }).encode()
    config_name = hashlib.sha256(config).hexdigest() + ".json"
    layer_name = digest + "/layer.tar"
    manifest = json.dumps([{"Config": config_name, "RepoTags": [name], "Layers": [layer_name]}])
    with tarfile.open(out, "w") as tar:
        for path, data in (layer_name, layer), (config_name, config), ("manifest.json", manifest.encode()):
            info = tarfile.TarInfo(path)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))


def anonymous(info):
    info.uid = info.gid = info.mtime = 0
    info.uname = info.gname = ""
    return info


main(*sys.argv[1:])
