/* SPDX-License-Identifier: BSD-3-Clause */
#include "device/identity.h"

#include <string.h>

#include "base/hash.h"
#include "base/machine.h"

/* ROCm has "GPU-XX" for devices without one, as many of consumers are, and HIP gives "XX" of it. */
bool xc_uuid_is_none(const unsigned char uuid[XC_DEVICE_UUID_BYTES])
{
    static const unsigned char zeros[XC_DEVICE_UUID_BYTES], marked[XC_DEVICE_UUID_BYTES] = "XX";

    return (memcmp(uuid, zeros, sizeof(zeros)) == 0) || (memcmp(uuid, marked, sizeof(marked)) == 0);
}

void xc_uuid_of_place(const char *bus_id, unsigned char uuid[XC_DEVICE_UUID_BYTES])
{
    uint64_t words[2] = {xc_machine_number(), xc_hash_text(XC_HASH_BEGIN, bus_id)};

    _Static_assert(sizeof(words) == XC_DEVICE_UUID_BYTES, "a UUID is two words");
    memcpy(uuid, words, sizeof(words));
}
