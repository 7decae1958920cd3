/* SPDX-License-Identifier: BSD-3-Clause */
/* The configuration that is passed on has the oldest layout that carries what was set. */
#include "backends/ncclfamily.h"
#include "check.h"

#define UNSET XCCL_CONFIG_UNDEF_INT

static void expect(const xcclConfig_t *config, int version, size_t size, unsigned layout)
{
    xc_nccl_config_t out;

    xc_nccl_config(config, version, &out);
    CHECK(out.size == size, "size %zu instead of %zu for version %d", out.size, size, version);
    CHECK(out.version == layout, "layout %u instead of %u", out.version, layout);
    CHECK(out.magic == 0xcafebeef, "%x", out.magic);
    bool open = (config->blocking == UNSET) && (version < 21700); /* no value of these says so */
    CHECK(out.blocking == (open ? 1 : config->blocking), "%d for %d", out.blocking, version);
    CHECK(out.cgaClusterSize == ((size >= 40) ? config->cgaClusterSize : UNSET), "cga");
    CHECK(out.minCTAs == ((size >= 40) ? config->minCTAs : UNSET), "minCTAs");
    CHECK(out.maxCTAs == ((size >= 40) ? config->maxCTAs : UNSET), "maxCTAs");
    CHECK(out.netName == ((size >= 40) ? config->netName : NULL), "netName");
    CHECK(out.splitShare == ((size >= 48) ? config->splitShare : UNSET), "splitShare");
}

int main(void)
{
    xcclConfig_t config = XCCL_CONFIG_INITIALIZER;

    CHECK(config.size == sizeof(xcclConfig_t), "the initializer's size");
    CHECK(config.magic == XCCL_API_MAGIC, "the initializer's magic");
    CHECK((config.blocking == UNSET) && (config.splitShare == UNSET) && (config.netName == NULL),
          "the initializer leaves all undefined");

    expect(&config, 22803, 24, 21400);
    expect(&config, 21700, 24, 21400);
    expect(&config, 21602, 24, 21400);
    expect(&config, 21400, 24, 21400);
    config.blocking = 0;
    expect(&config, 22803, 24, 21400);
    expect(&config, 21400, 24, 21400);
    config.maxCTAs = 8;
    expect(&config, 22803, 40, 21700);
    expect(&config, 21700, 40, 21700);
    expect(&config, 21602, 24, 21400); /* has no CTAs: left out */
    config.netName = "Socket";
    config.cgaClusterSize = 2;
    config.minCTAs = 1;
    expect(&config, 21703, 40, 21700);
    config.splitShare = 1;
    expect(&config, 22803, 48, 21800);
    expect(&config, 21703, 40, 21700); /* has no split: left out */
    expect(&config, 21403, 24, 21400);
    return xt_done("configuration layouts");
}
