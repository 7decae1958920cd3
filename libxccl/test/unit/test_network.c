/* SPDX-License-Identifier: BSD-3-Clause */
/* What the vendor's library would find between nodes: ports of verbs, plugins, and the loader's
 * cache. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "vendor/loader_cache.h"
#include "vendor/vendor.h"
#include "vendor/verbs.h"

static char folder[] = "/tmp/xccl-test-network-XXXXXX";

static const char *in_folder(const char *name)
{
    static char path[128];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static void write_bytes(const char *name, const void *bytes, size_t len)
{
    FILE *f = fopen(in_folder(name), "w");

    CHECK((f != NULL) && (fwrite(bytes, 1, len, f) == len) && (fclose(f) == 0), "%s", name);
}

static void make_folder(const char *name)
{
    CHECK((mkdir(in_folder(name), 0700) == 0) || (errno == EEXIST), "%s: %s", name,
          strerror(errno));
}

/* ---- ports ---- */

static void plant_port(const char *device, const char *number, const char *state, const char *link)
{
    char port[64], file[96];

    make_folder("verbs");
    snprintf(port, sizeof(port), "verbs/%s", device);
    make_folder(port);
    snprintf(port, sizeof(port), "verbs/%s/ports", device);
    make_folder(port);
    snprintf(port, sizeof(port), "verbs/%s/ports/%s", device, number);
    make_folder(port);
    snprintf(file, sizeof(file), "%s/state", port);
    write_bytes(file, state, strlen(state));
    snprintf(file, sizeof(file), "%s/link_layer", port);
    write_bytes(file, link, strlen(link));
}

static bool usable_for(const char *wanted)
{
    return xc_verbs_usable(in_folder("verbs"), wanted);
}

static bool usable(void)
{
    return usable_for("");
}

static void test_ports(void)
{
    CHECK(!usable(), "no folder");
    make_folder("verbs");
    make_folder("verbs/mlx5_bare");
    CHECK(!usable(), "a device without ports");
    plant_port("mlx5_0", "1", "1: DOWN\n", "InfiniBand\n");
    plant_port("mlx5_1", "1", "2: INIT\n", "Ethernet\n");
    CHECK(!usable(), "ports that are down");
    plant_port("rdmap0s6", "1", "4: ACTIVE\n", "Unspecified\n");
    CHECK(!usable(), "EFA");
    plant_port("mlx5_0", "2", "4: ACTIVE\n", "InfiniBand\n");
    CHECK(usable(), "the second port of a device");
    plant_port("mlx5_0", "2", "5: ACTIVE_DEFER\n", "InfiniBand\n");
    CHECK(!usable(), "that too is down");
    plant_port("mlx5_1", "1", "4: ACTIVE\n", "Ethernet\n");
    CHECK(usable(), "RoCE");
}

/* By NCCL_IB_HCA; port 2 of mlx5_0 and port 1 of mlx5_1 are there, and mlx5_10 is not. */
static void test_wanted_ports(void)
{
    static const char *const taken[] = {
        "mlx5",
        "mlx5_1",
        "mlx5_9,mlx5_1",
        "mlx5_0:2",
        "=mlx5_0",
        "=mlx5_9,mlx5_0:2",
        "^mlx5_0",
        "^=mlx5,rdmap0s6",
        "^mlx5_0,mlx5_1:2",
        "^=mlx5_0:1",
        ",",
        "=",
        "mlx5_0::1",
        "mlx5_0:2:1",
        ":",
        "^mlx4",
    };
    static const char *const left[] = {
        "mlx4",
        "mlx5_10",
        "mlx5_0:1",
        "mlx5_0:1,mlx5_1:2",
        "=mlx5",
        "=mlx5_9,mlx5",
        "^mlx5",
        "^mlx5_0,mlx5_1",
        "^=mlx5_0,mlx5_1:1",
        "rdmap0s6",
        "^",
        "=^mlx4",
    };

    plant_port("mlx5_0", "2", "4: ACTIVE\n", "InfiniBand\n");
    plant_port("mlx5_1", "1", "4: ACTIVE\n", "Ethernet\n");
    for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
        CHECK(usable_for(taken[i]), "NCCL_IB_HCA=%s", taken[i]);
    }
    for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++) {
        CHECK(!usable_for(left[i]), "NCCL_IB_HCA=%s", left[i]);
    }
}

/* ---- plugins ---- */

/* The loader looks into a folder with libnccl-net.so, libnccl-net-own.so and librccl-net-amd.so. */
static void test_plugins(void)
{
    char list[256];

    CHECK(xc_vendor_has_plugin(""), "the usual one");
    CHECK(xc_vendor_has_plugin("own") && xc_vendor_has_plugin("libnccl-net-own.so"), "by name");
    CHECK(xc_vendor_has_plugin("amd"), "RCCL's");
    CHECK(!xc_vendor_has_plugin("none") && !xc_vendor_has_plugin("None"), "none is wanted");
    CHECK(!xc_vendor_has_plugin("gone"), "the usual one does not stand for another");
    CHECK(xc_vendor_has_plugin("gone,own") && xc_vendor_has_plugin("own,gone"), "one of several");
    CHECK(xc_vendor_has_plugin("none,own"), "in a list it is a name like others");
    CHECK(!xc_vendor_has_plugin("gone,lost,"), "none of several");
    write_bytes("plugin.so", "", 0);
    snprintf(list, sizeof(list), "/no/such/plugin.so,%s", in_folder("plugin.so"));
    CHECK(xc_vendor_has_plugin(list), "%s", list);
    CHECK(!xc_vendor_has_plugin("/no/such/plugin.so"), "a file that is not there");
}

/* ---- the loader's cache ---- */

enum { HEAD = 48, ENTRY = 24, OLD_HEAD = 16, OLD_ENTRY = 12 };

static void put(unsigned char *at, uint32_t number)
{
    memcpy(at, &number, sizeof(number));
}

/* One library of glibc's format, behind one of the older format if so asked; its length. */
static size_t make_cache(unsigned char *bytes, bool behind_older, const char *name,
                         const char *path)
{
    static const char older[] = "ld.so-1.7.0";
    size_t            skip = behind_older ? OLD_HEAD + OLD_ENTRY + 4 : 0; /* aligned */
    unsigned char    *head = bytes + skip, *entry = head + HEAD;
    size_t            texts = HEAD + ENTRY, len = strlen(name) + 1;

    memset(bytes, 0, skip + texts);
    if (behind_older) {
        memcpy(bytes, older, sizeof(older));
        put(bytes + 12, 1);
    }
    memcpy(head, "glibc-ld.so.cache1.1", 20);
    put(head + 20, 1);
    put(entry, 0x0303);
    put(entry + 4, (uint32_t)texts);
    put(entry + 8, (uint32_t)(texts + len));
    memcpy(head + texts, name, len);
    memcpy(head + texts + len, path, strlen(path) + 1);
    return skip + texts + len + strlen(path) + 1;
}

static bool has(const unsigned char *bytes, size_t len, const char *name)
{
    write_bytes("cache", bytes, len);
    return xc_loader_cache_has(in_folder("cache"), name);
}

static void test_cache(void)
{
    unsigned char bytes[512];
    char          plugin[128];

    write_bytes("libnccl-net.so", "", 0);
    snprintf(plugin, sizeof(plugin), "%s", in_folder("libnccl-net.so"));
    for (int older = 0; older < 2; older++) {
        size_t len = make_cache(bytes, older != 0, "libnccl-net.so", plugin);
        CHECK(has(bytes, len, "libnccl-net.so"), "it is there");
        CHECK(!has(bytes, len, "libnccl-net") && !has(bytes, len, "nccl-net.so") &&
                  !has(bytes, len, ""),
              "a part of a name");
        for (size_t cut = 0; cut < len; cut++) {
            CHECK(!has(bytes, cut, "libnccl-net.so"), "of %zu bytes %zu are there", len, cut);
        }
        len = make_cache(bytes, older != 0, "libnccl-net.so", "/no/such/libnccl-net.so");
        CHECK(!has(bytes, len, "libnccl-net.so"), "a file that is gone");
    }
    size_t len = make_cache(bytes, false, "libnccl-net.so", plugin);
    put(bytes + 20, UINT32_MAX);
    CHECK(!has(bytes, len, "libnccl-net.so"), "more entries than there can be");
    make_cache(bytes, false, "libnccl-net.so", plugin);
    put(bytes + HEAD + 4, UINT32_MAX);
    CHECK(!has(bytes, len, "libnccl-net.so"), "a name outside of the file");
    CHECK(!xc_loader_cache_has("/no/such/cache", "libc.so.6"), "no cache");
    CHECK(!xc_loader_cache_has("/tmp", "libc.so.6"), "a folder");
}

/* As this machine's ldconfig writes it. */
static void test_real_cache(void)
{
    if (access(XC_LOADER_CACHE, R_OK) == 0) {
        CHECK(xc_loader_cache_has(XC_LOADER_CACHE, "libc.so.6"), "the C library");
        CHECK(!xc_loader_cache_has(XC_LOADER_CACHE, "libc.so.66"), "another one");
    }
}

int main(void)
{
    char command[128];

    CHECK(mkdtemp(folder) != NULL, "%s", folder);
    test_ports();
    test_wanted_ports();
    test_plugins();
    test_cache();
    test_real_cache();
    snprintf(command, sizeof(command), "rm -r %s", folder);
    CHECK(system(command) == 0, "%s", command);
    return xt_done("network");
}
