/* SPDX-License-Identifier: BSD-3-Clause */
/* The header that xccl puts before the vendor's unique id. */
#ifndef XC_API_UNIQUE_ID_H
#define XC_API_UNIQUE_ID_H

#include <stdint.h>

#include "backends/backend.h"
#include <xccl/xccl.h>

#define XC_ID_ABI 1 /* raise when the header, or what ranks must agree on, changes */

struct xc_id_header {
    char     magic[8];
    uint32_t abi;
    uint32_t id_bytes; /* of the vendor's id that follows */
    int32_t  library_version;
    int32_t  xccl_version;
    char     library[16];
    char     host[64]; /* where it was made, for messages */
    uint64_t checksum; /* of all of the above, with 0 here, and of the vendor's id */
    char     reserved[16];
};
_Static_assert(sizeof(struct xc_id_header) == 128, "room for 4096 bytes stays");

/* Write the header for lib around the vendor's bytes, which are in place already. */
void xc_id_seal(xcclUniqueId *id, const struct xc_library *lib);

/* Where the vendor's bytes are. */
char *xc_id_payload(xcclUniqueId *id);

/* Is id one of ours, untouched, and made by the library that this rank loaded? */
xcclResult_t xc_id_check(const xcclUniqueId *id, const struct xc_library *lib, int rank);

#endif
