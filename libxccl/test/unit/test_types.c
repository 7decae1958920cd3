/* SPDX-License-Identifier: BSD-3-Clause */
/* Names, sizes and numbers of types, operations, results. */
#include "backends/backend.h"
#include "backends/ncclfamily.h"
#include "check.h"

static const struct {
    xcclDataType_t type;
    int            number; /* in every library of the NCCL family */
    size_t         size;
    const char    *name;
} types[] = {
    {xcclInt8, 0, 1, "int8"},
    {xcclUint8, 1, 1, "uint8"},
    {xcclInt32, 2, 4, "int32"},
    {xcclUint32, 3, 4, "uint32"},
    {xcclInt64, 4, 8, "int64"},
    {xcclUint64, 5, 8, "uint64"},
    {xcclFloat16, 6, 2, "float16"},
    {xcclFloat32, 7, 4, "float32"},
    {xcclFloat64, 8, 8, "float64"},
    {xcclBfloat16, 9, 2, "bfloat16"},
    {xcclFloat8e4m3, 10, 1, "float8e4m3"},
    {xcclFloat8e5m2, 11, 1, "float8e5m2"},
};

static void test_types(void)
{
    CHECK(sizeof(types) / sizeof(types[0]) == xcclNumTypes, "the test misses a type");
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        CHECK((int)types[i].type == types[i].number, "%s", types[i].name);
        CHECK(xc_type_size(types[i].type) == types[i].size, "%s", types[i].name);
        const char *name = xc_type_name(types[i].type);
        CHECK((name != NULL) && (strcmp(name, types[i].name) == 0), "%s", types[i].name);
    }
    CHECK(xc_type_size((xcclDataType_t)xcclNumTypes) == 0, "a type too many");
    CHECK(xc_type_size((xcclDataType_t)-1) == 0, "a negative type");
    CHECK(xc_type_name((xcclDataType_t)-1) == NULL, "a negative type");
}

static void test_ops(void)
{
    static const char *const names[] = {"sum", "prod", "max", "min", "avg"};

    CHECK((xcclSum == 0) && (xcclProd == 1) && (xcclMax == 2) && (xcclMin == 3) && (xcclAvg == 4),
          "NCCL's numbers");
    for (int i = 0; i < xcclNumOps; i++) {
        CHECK(strcmp(xc_op_name((xcclRedOp_t)i), names[i]) == 0, "%s", names[i]);
    }
    CHECK(xc_op_name((xcclRedOp_t)xcclNumOps) == NULL, "made by the user");
    CHECK(xc_op_name((xcclRedOp_t)-1) == NULL, "a negative operation");
}

static void test_colls(void)
{
    for (int i = 0; i < XC_NUM_COLLS; i++) {
        const char *name = xc_coll_name((enum xc_coll)i);
        CHECK((name != NULL) && (name[0] != '\0'), "collective %d", i);
        for (int j = 0; j < i; j++) {
            CHECK(strcmp(name, xc_coll_name((enum xc_coll)j)) != 0, "%s twice", name);
        }
    }
    CHECK(xc_coll_name(XC_NUM_COLLS) == NULL, "one too many");
}

static void test_results(void)
{
    static const int known[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 64, 65, 66};

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        const char *text = xcclGetErrorString((xcclResult_t)known[i]);
        CHECK(strcmp(text, "unknown result code") != 0, "%d", known[i]);
    }
    CHECK(strcmp(xcclGetErrorString((xcclResult_t)99), "unknown result code") == 0, "99");
    for (int i = 0; i <= 8; i++) {
        CHECK((int)xc_nccl_result(i) == i, "%d", i);
    }
    CHECK(xc_nccl_result(9) == xcclInternalError, "a result nobody knows");
    CHECK(xc_nccl_result(-1) == xcclInternalError, "a result nobody knows");
}

/* Which type and operation each row offers in which version. */
static void test_rows(void)
{
    static const char *const    names[XC_NUM_ROWS] = {"nccl",    "rccl",   "msccl",
                                                      "mscclpp", "oneccl", "hccl"};
    const struct xc_vendor_row *rows = xc_vendor_rows();

    for (size_t i = 0; i < XC_NUM_ROWS; i++) {
        CHECK(strcmp(rows[i].name, names[i]) == 0, "%s", rows[i].name);
        CHECK(strcmp(xc_backend_all()[i]->name, names[i]) == 0, "%s", xc_backend_all()[i]->name);
        CHECK(rows[i].type_since[xcclFloat32] == 0, "float32 in %s", rows[i].name);
        CHECK(rows[i].op_since[xcclSum] == 0, "sum in %s", rows[i].name);
        CHECK(rows[i].op_since[xcclAvg] > rows[i].op_since[xcclSum], "avg in %s", rows[i].name);
        CHECK((rows[i].id_bytes > 0) && (rows[i].id_bytes <= 4096), "%zu", rows[i].id_bytes);
    }
    CHECK(rows[XC_ROW_NCCL].type_since[xcclFloat8e4m3] == 22400, "float8 in NCCL");
    CHECK(rows[XC_ROW_MSCCL].type_since[xcclFloat8e5m2] == XC_NEVER, "float8 in MSCCL");
    CHECK(rows[XC_ROW_MSCCLPP].type_since[xcclFloat64] == XC_NEVER, "float64 in MSCCL++");
    CHECK(rows[XC_ROW_MSCCLPP].op_since[xcclMax] == XC_NEVER, "max in MSCCL++");
    CHECK(rows[XC_ROW_MSCCLPP].op_since[xcclMin] == 0, "min in MSCCL++");
}

static void test_versions(void)
{
    char buf[16];

    CHECK(strcmp(xc_nccl_version_text(22803, buf, sizeof(buf)), "2.28.3") == 0, "%s", buf);
    CHECK(strcmp(xc_nccl_version_text(21005, buf, sizeof(buf)), "2.10.5") == 0, "%s", buf);
    CHECK(strcmp(xc_nccl_version_text(20909, buf, sizeof(buf)), "2.9.9") == 0, "%s", buf);
    CHECK(strcmp(xc_nccl_version_text(900, buf, sizeof(buf)), "0.9.0") == 0, "%s", buf);
    CHECK(strcmp(xc_nccl_version_text(1000, buf, sizeof(buf)), "0.10.0") == 0, "%s", buf);
    CHECK(strcmp(xc_nccl_version_text(2708, buf, sizeof(buf)), "2.7.8") == 0, "%s", buf);
}

int main(void)
{
    test_types();
    test_ops();
    test_colls();
    test_results();
    test_rows();
    test_versions();
    return xt_done("types, operations, results, rows");
}
