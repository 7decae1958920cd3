/* SPDX-License-Identifier: BSD-3-Clause */
/* The header before the vendor's id: made, damaged, of another library, of another xccl. */
#include <stddef.h>
#include <stdlib.h>

#include "api/unique_id.h"
#include "base/log.h"
#include "check.h"

static struct xc_library library(const char *name, int version)
{
    struct xc_library lib = {.name = name,
                             .path = "/opt/a/libnccl.so.2",
                             .found_by = "soname",
                             .version = version,
                             .id_bytes = 128,
                             .device = "cuda"};
    return lib;
}

static void test_damage(const xcclUniqueId *good, const struct xc_library *lib)
{
    xcclUniqueId id;

    /* Every byte of header and payload counts (the reserved ones too). */
    for (size_t i = 0; i < sizeof(struct xc_id_header) + 128; i++) {
        id = *good;
        id.internal[i] ^= 0x20;
        xcclResult_t rc = xc_id_check(&id, lib, 1);
        bool         abi = (i >= offsetof(struct xc_id_header, abi)) &&
                   (i < offsetof(struct xc_id_header, id_bytes));
        CHECK(rc == (abi ? xcclVersionMismatch : xcclInvalidArgument), "byte %zu: %d", i, rc);
    }
    memset(&id, 0, sizeof(id));
    CHECK(xc_id_check(&id, lib, 3) == xcclInvalidArgument, "all zero");
    CHECK_HAS(xc_last_detail(), "rank 3");
    CHECK_HAS(xc_last_detail(), "xcclGetUniqueId");
    for (size_t i = 0; i < sizeof(id.internal); i++) {
        id.internal[i] = (char)rand();
    }
    CHECK(xc_id_check(&id, lib, 0) == xcclInvalidArgument, "garbage");
}

static void test_mismatch(const xcclUniqueId *good)
{
    struct xc_library other = library("nccl", 22703);

    CHECK(xc_id_check(good, &other, 1) == xcclVersionMismatch, "another version");
    CHECK_HAS(xc_last_detail(), "rank 1 loaded nccl 2.27.3 from /opt/a/libnccl.so.2");
    CHECK_HAS(xc_last_detail(), "the id was made by nccl 2.28.3");
    other = library("rccl", 22803);
    CHECK(xc_id_check(good, &other, 2) == xcclVersionMismatch, "another library");
    CHECK_HAS(xc_last_detail(), "rank 2 loaded rccl 2.28.3");
}

int main(void)
{
    struct xc_library lib = library("nccl", 22803);
    xcclUniqueId      id = {{0}};

    for (int i = 0; i < 128; i++) {
        xc_id_payload(&id)[i] = (char)(i + 1);
    }
    xc_id_seal(&id, &lib);
    CHECK(xc_id_check(&id, &lib, 0) == xcclSuccess, "%s", xc_last_detail());
    for (int i = 0; i < 128; i++) {
        CHECK(xc_id_payload(&id)[i] == (char)(i + 1), "byte %d of the vendor's id", i);
    }
    test_damage(&id, &lib);
    test_mismatch(&id);
    return xt_done("unique ids");
}
