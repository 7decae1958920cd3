# SPDX-License-Identifier: BSD-3-Clause
"""What is in the source tarball, and what it needs, as a document of SPDX 2.3. The same tarball gives the same text."""

import hashlib
import io
import json
import re
import tarfile

LICENCE = "BSD-3-Clause"
COPYRIGHT = "Copyright (c) 2026, The xccl developers"
# (name, licence, relationship to xccl, why): nothing of these is in the tarball.
NEEDED = (
    ("cmake", "BSD-3-Clause", "BUILD_TOOL_OF", "configures and builds"),
    ("gcc", "GPL-3.0-or-later WITH GCC-exception-3.1", "BUILD_TOOL_OF", "or another C compiler"),
    ("openmpi", "BSD-3-Clause", "OPTIONAL_DEPENDENCY_OF", "one MPI for the interposer: this, or MPICH"),
    ("mpich", "LicenseRef-mpich2", "OPTIONAL_DEPENDENCY_OF", "one MPI for the interposer: this, or Open MPI"),
    ("hwloc", "BSD-3-Clause", "OPTIONAL_DEPENDENCY_OF", "binds where no site's map applies"),
    ("cuda", "NOASSERTION", "OPTIONAL_DEPENDENCY_OF", "nvcc compiles the kernels; the driver is opened at run time"),
    ("hip", "MIT", "OPTIONAL_DEPENDENCY_OF", "hipcc compiles the kernels; the runtime is opened at run time"),
    ("nccl", "BSD-3-Clause", "OPTIONAL_DEPENDENCY_OF", "opened at run time"),
    ("rccl", "BSD-3-Clause", "OPTIONAL_DEPENDENCY_OF", "opened at run time"),
)  # fmt: skip


def files_of(packed):
    """[SPDX file] of a tarball, in its order."""
    found = []
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        for entry in tar:
            if not entry.isfile():
                continue
            content = tar.extractfile(entry).read()
            name = entry.name.split("/", 1)[1]
            found.append(
                {
                    "SPDXID": f"SPDXRef-File-{len(found) + 1}",
                    "fileName": f"./{name}",
                    "checksums": [
                        {"algorithm": "SHA1", "checksumValue": hashlib.sha1(content).hexdigest()},
                        {
                            "algorithm": "SHA256",
                            "checksumValue": hashlib.sha256(content).hexdigest(),
                        },
                    ],
                    "licenseConcluded": LICENCE,
                    "licenseInfoInFiles": [
                        LICENCE
                        if b"SPDX-License-Identifier: BSD-3-Clause" in content
                        else "NOASSERTION"
                    ],
                    "copyrightText": COPYRIGHT,
                }
            )
    return found


def verification_code(files):
    """SPDX 2.3, 7.9: the SHA1 of the files' sorted SHA1 sums."""
    sums = sorted(file["checksums"][0]["checksumValue"] for file in files)
    return hashlib.sha1("".join(sums).encode()).hexdigest()


def needed_packages():
    for name, licence, _, why in NEEDED:
        yield {
            "SPDXID": f"SPDXRef-Package-{name}",
            "name": name,
            "downloadLocation": "NOASSERTION",
            "filesAnalyzed": False,
            "licenseConcluded": "NOASSERTION",
            "licenseDeclared": licence,
            "copyrightText": "NOASSERTION",
            "comment": why,
        }


def document(name, packed, url, created):
    """The document, as text, of the tarball @p name, which @p url is the repository of; @p created is in UTC."""
    version = re.fullmatch(r"xccl-(.*)\.tar\.gz", name)[1]
    digest, files = hashlib.sha256(packed).hexdigest(), files_of(packed)
    package = {
        "SPDXID": "SPDXRef-Package-xccl",
        "name": "xccl",
        "versionInfo": version,
        "packageFileName": name,
        "downloadLocation": f"{url}/releases/download/v{version}/{name}",
        "homepage": url,
        "filesAnalyzed": True,
        "packageVerificationCode": {"packageVerificationCodeValue": verification_code(files)},
        "checksums": [{"algorithm": "SHA256", "checksumValue": digest}],
        "licenseConcluded": LICENCE,
        "licenseDeclared": LICENCE,
        "licenseInfoFromFiles": sorted({one for f in files for one in f["licenseInfoInFiles"]}),
        "copyrightText": COPYRIGHT,
    }
    ends = [("SPDXRef-DOCUMENT", "DESCRIBES", package["SPDXID"])]
    ends += [(package["SPDXID"], "CONTAINS", file["SPDXID"]) for file in files]
    ends += [(f"SPDXRef-Package-{n}", how, package["SPDXID"]) for n, _, how, _ in NEEDED]
    return (
        json.dumps(
            {
                "spdxVersion": "SPDX-2.3",
                "dataLicense": "CC0-1.0",
                "SPDXID": "SPDXRef-DOCUMENT",
                "name": f"xccl-{version}",
                "documentNamespace": f"{url}/spdx/xccl-{version}-{digest[:16]}",
                "creationInfo": {"created": created, "creators": ["Tool: xccl ci/release"]},
                "hasExtractedLicensingInfos": [
                    {
                        "licenseId": "LicenseRef-mpich2",
                        "name": "MPICH's licence",
                        "extractedText": "The file COPYRIGHT of MPICH's sources.",
                    }
                ],
                "packages": [package, *needed_packages()],
                "files": files,
                "relationships": [
                    {"spdxElementId": a, "relationshipType": how, "relatedSpdxElement": b}
                    for a, how, b in ends
                ],
            },
            indent=1,
        )
        + "\n"
    )
