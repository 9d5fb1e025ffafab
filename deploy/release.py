#!/usr/bin/env python3
"""Parts of a release that `deploy/release.sh` puts together. The same input gives the same bytes.

  release.py notes VERSION                 prints CHANGELOG.md's section of this version
  release.py chart VERSION FOLDER          weir-VERSION.tgz, and the same as an OCI layout, weir-chart-VERSION.tar
  release.py sbom VERSION ROOT... > FILE   SPDX 2.3: what the images' root folders (NAME/ARCH) are made of

$SOURCE_DATE_EPOCH is the time that files get.
"""
import gzip
import hashlib
import io
import json
import os
import re
import sys
import tarfile
import time

import image

EPOCH = int(os.environ["SOURCE_DATE_EPOCH"])
CHART = "charts/weir"
CHART_CONFIG = "application/vnd.cncf.helm.config.v1+json"
CHART_LAYER = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def notes(version):
    sections = re.split(r"^## (.+)\n", read("CHANGELOG.md"), flags=re.M)
    found = dict(zip(sections[1::2], sections[2::2])).get(version)
    if not found or not found.strip():
        sys.exit(f"release: CHANGELOG.md has no section {version}")
    return found.strip() + "\n"


def chart_metadata():
    """Chart.yaml, which has scalars and lists of words only."""
    metadata = {}
    for line in read(f"{CHART}/Chart.yaml").splitlines():
        key, _, value = line.partition(": ")
        if not re.fullmatch(r"\w+", key) or not value:
            sys.exit(f"release: this line of Chart.yaml is new to release.py: {line}")
        is_list = value.startswith("[")
        metadata[key] = value[1:-1].split(", ") if is_list else value.strip('"')
    return metadata


def chart_files():
    ignored = {"tests"}
    for folder, folders, files in os.walk(CHART):
        folders[:] = sorted(set(folders) - (ignored if folder == CHART else set()))
        yield from (os.path.join(folder, name) for name in sorted(files) if not name.endswith((".tgz", ".swp")))


def packed_chart():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        # Helm expects this file first.
        for path in sorted(chart_files(), key=lambda path: (path != f"{CHART}/Chart.yaml", path)):
            data = read(path).encode()
            info = tarfile.TarInfo("weir/" + os.path.relpath(path, CHART))
            info.size, info.mtime, info.mode = len(data), EPOCH, 0o644
            tar.addfile(info, io.BytesIO(data))
    return gzip.compress(out.getvalue(), 9, mtime=0)


def chart(version, folder):
    metadata = chart_metadata()
    if (metadata["version"], metadata["appVersion"]) != (version, version):
        sys.exit(f"release: {CHART}/Chart.yaml is not of version {version}")
    data = packed_chart()
    with open(f"{folder}/weir-{version}.tgz", "wb") as file:
        file.write(data)
    archive = image.Archive(f"{folder}/weir-chart-{version}.tar")
    config = archive.blob(CHART_CONFIG, image.encode(metadata))
    layer = archive.blob(CHART_LAYER, data)
    manifest = archive.blob(image.MANIFEST, image.encode(
        {"schemaVersion": 2, "mediaType": image.MANIFEST, "config": config, "layers": [layer]}))
    archive.close(manifest, {"org.opencontainers.image.ref.name": version})


def package(name, version, supplier, reference=None, licence="NOASSERTION"):
    known = {"SPDXID": "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", f"{name}-{version}"), "name": name,
             "versionInfo": version, "supplier": supplier, "downloadLocation": "NOASSERTION",
             "filesAnalyzed": False, "licenseConcluded": licence, "licenseDeclared": licence,
             "copyrightText": "NOASSERTION"}
    if reference:
        known["externalRefs"] = [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                                  "referenceLocator": reference}]
    return known


def debian(line, arch):
    name, version = line.split()
    name = name.partition(":")[0]
    return package(f"{name}-{arch}", version, "Organization: Debian",
                   f"pkg:deb/debian/{name}@{version.replace('+', '%2B')}?arch={arch}")


def sbom(version, roots):
    weir = package("weir", version, "Organization: Weir", licence="Apache-2.0")
    ptx_compiler = re.search(r"^compiler=(\S+)==(\S+)$", read("e2e/setup.sh"), re.M)
    compiler = package(ptx_compiler[1], ptx_compiler[2], "Organization: NVIDIA",
                       f"pkg:pypi/{ptx_compiler[1]}@{ptx_compiler[2]}")
    packages, relations = {}, [("SPDXRef-DOCUMENT", "DESCRIBES", weir)]
    for root in roots:
        name, arch = root.rstrip("/").split("/")[-2:]
        made = package(f"{name}-{arch}-image", version, "Organization: Weir", licence="NOASSERTION")
        parts = [weir] + [debian(line, arch) for line in read(f"{root}/usr/share/weir/packages").splitlines()]
        if os.path.exists(f"{root}/usr/local/bin/weir-compile"):
            parts.append(compiler)
        relations.append(("SPDXRef-DOCUMENT", "DESCRIBES", made))
        relations += [(made["SPDXID"], "CONTAINS", part) for part in parts]
    packages = {part["SPDXID"]: part for _, _, part in relations}
    relations = [{"spdxElementId": left, "relationshipType": kind, "relatedSpdxElement": part["SPDXID"]}
                 for left, kind, part in relations]
    content = {"packages": [packages[name] for name in sorted(packages)], "relationships": relations}
    digest = hashlib.sha256(image.encode(content)).hexdigest()
    return content | {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
                      "name": f"weir-{version}", "documentNamespace": f"https://weir.dev/spdx/weir-{version}-{digest}",
                      "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(EPOCH)),
                                       "creators": ["Tool: weir-release"]}}


def main():
    command, *arguments = sys.argv[1:]
    if command == "notes":
        sys.stdout.write(notes(*arguments))
    elif command == "chart":
        chart(*arguments)
    elif command == "sbom":
        print(json.dumps(sbom(arguments[0], arguments[1:]), indent=1, sort_keys=True))
    else:
        sys.exit(__doc__)


main()
