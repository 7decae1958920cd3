/* SPDX-License-Identifier: BSD-3-Clause */
#include "api/unique_id.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/log.h"
#include "vendor/vendor.h"

static const char magic[8] = "XCCLUID";

/* It finds an id that was cut, padded or overwritten. */
static uint64_t checksum(struct xc_id_header header, const char *payload)
{
    header.checksum = 0;
    uint64_t state = xc_hash_bytes(XC_HASH_BEGIN, &header, sizeof(header));
    return xc_hash_bytes(state, payload, header.id_bytes);
}

char *xc_id_payload(xcclUniqueId *id)
{
    return id->internal + sizeof(struct xc_id_header);
}

void xc_id_seal(xcclUniqueId *id, const struct xc_library *lib)
{
    struct xc_id_header header = {.abi = XC_ID_ABI,
                                  .id_bytes = (uint32_t)lib->id_bytes,
                                  .library_version = lib->version,
                                  .xccl_version = XCCL_VERSION_CODE};

    memcpy(header.magic, magic, sizeof(magic));
    snprintf(header.library, sizeof(header.library), "%s", lib->name);
    if (gethostname(header.host, sizeof(header.host) - 1) != 0) {
        header.host[0] = '\0';
    }
    header.checksum = checksum(header, xc_id_payload(id));
    memcpy(id->internal, &header, sizeof(header));
}

xcclResult_t xc_id_check(const xcclUniqueId *id, const struct xc_library *lib, int rank)
{
    struct xc_id_header header;
    const char         *payload = id->internal + sizeof(header);
    char                here[16];
    char                there[16];

    memcpy(&header, id->internal, sizeof(header));
    if ((memcmp(header.magic, magic, sizeof(magic)) != 0) ||
        (header.id_bytes > sizeof(id->internal) - sizeof(header)) ||
        ((header.abi == XC_ID_ABI) && (header.checksum != checksum(header, payload)))) {
        return xc_fail(xcclInvalidArgument,
                       "rank %d: the unique id was not made by xcclGetUniqueId or was damaged on "
                       "its way; hand over all %d bytes of it",
                       rank, XCCL_UNIQUE_ID_BYTES);
    }
    if (header.abi != XC_ID_ABI) {
        return xc_fail(xcclVersionMismatch,
                       "rank %d has xccl %d.%d.%d, the id was made by an xccl of another kind (id "
                       "format %u, here %d); use one xccl on all ranks",
                       rank, XCCL_MAJOR, XCCL_MINOR, XCCL_PATCH, header.abi, XC_ID_ABI);
    }
    if ((strncmp(header.library, lib->name, sizeof(header.library)) == 0) &&
        (header.library_version == lib->version)) {
        return xcclSuccess;
    }
    return xc_fail(xcclVersionMismatch,
                   "rank %d loaded %s %s from %s (found by: %s), the id was made by %.16s %s on "
                   "host %.64s; make all ranks load the same file, for instance with "
                   "XCCL_CCL_LIBRARY",
                   rank, lib->name, xc_nccl_version_text(lib->version, here, sizeof(here)),
                   lib->path, lib->found_by, header.library,
                   xc_nccl_version_text(header.library_version, there, sizeof(there)), header.host);
}
