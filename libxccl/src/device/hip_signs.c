/* SPDX-License-Identifier: BSD-3-Clause */
#include "device/hip_signs.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/log.h"

enum { MAX_DEVICES = 64 };

struct sign {
    void        *ptr;
    unsigned     id;
    xcclStream_t stream;
    struct sign *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    struct sign *first;  /* the one that is looked at */
    unsigned     resets; /* atomic */
} devices[MAX_DEVICES];

bool xc_hip_sign_add(int device, void *ptr, unsigned id, xcclStream_t stream)
{
    struct sign *sign = NULL;

    if ((device >= 0) && (device < MAX_DEVICES) && (id != 0)) {
        sign = malloc(sizeof(*sign));
    }
    if (sign == NULL) {
        return false;
    }
    pthread_mutex_lock(&lock);
    *sign = (struct sign){ptr, id, stream, devices[device].first};
    devices[device].first = sign;
    pthread_mutex_unlock(&lock);
    return true;
}

/* Of this memory, or of this stream where ptr is NULL. */
static void *take(const void *ptr, xcclStream_t stream)
{
    struct sign *found = NULL;

    pthread_mutex_lock(&lock);
    for (int i = 0; (i < MAX_DEVICES) && (found == NULL); i++) {
        struct sign **at = &devices[i].first;

        while ((*at != NULL) && ((ptr != NULL) ? ((*at)->ptr != ptr) : ((*at)->stream != stream))) {
            at = &(*at)->next;
        }
        found = *at;
        *at = (found != NULL) ? found->next : NULL;
    }
    pthread_mutex_unlock(&lock);
    void *taken = (found != NULL) ? found->ptr : NULL;
    free(found);
    return taken;
}

void xc_hip_sign_remove(const void *ptr)
{
    if (ptr != NULL) {
        (void)take(ptr, NULL);
    }
}

void *xc_hip_sign_take(xcclStream_t stream)
{
    return (stream != NULL) ? take(NULL, stream) : NULL;
}

/* With the lock held. All of ours is gone with the first. */
static void forget(int device)
{
    while (devices[device].first != NULL) {
        struct sign *sign = devices[device].first;

        devices[device].first = sign->next;
        free(sign);
    }
}

unsigned xc_hip_sign_resets(int device, unsigned (*id_of)(void *ptr))
{
    if ((device < 0) || (device >= MAX_DEVICES)) {
        return 0;
    }
    if (id_of != NULL) {
        pthread_mutex_lock(&lock);
        const struct sign *first = devices[device].first;
        if ((first != NULL) && (id_of(first->ptr) != first->id)) {
            xc_info("the program has reset device %d", device);
            forget(device);
            __atomic_add_fetch(&devices[device].resets, 1, __ATOMIC_ACQ_REL);
        }
        pthread_mutex_unlock(&lock);
    }
    return __atomic_load_n(&devices[device].resets, __ATOMIC_ACQUIRE);
}
