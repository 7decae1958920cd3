/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/events.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/log.h"

enum { MAX_EVENTS = 256 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct idle_event {
    const struct xc_device_ops *dev;
    int                         device;
    unsigned                    resets; /* of the device before it was made, or given back */
    void                       *event;
} idle[MAX_EVENTS];
static int num_idle;

/*
 * The driver crashes if it is handed an event of before a reset of its device. Programs hardly ever
 * reset one, so only events that were made after a reset are listed: any other one that comes back
 * then is of before.
 */
static struct made_later {
    void    *event;
    unsigned resets;
}         *later;
static int num_later, room_later;

/* With the lock. Not listed, for lack of memory, it is taken for an old one and left alone. */
static void list(void *event, unsigned resets)
{
    if (num_later == room_later) {
        int                room = (room_later > 0) ? 2 * room_later : 64;
        struct made_later *more = realloc(later, (size_t)room * sizeof(*more));
        if (more == NULL) {
            return;
        }
        later = more;
        room_later = room;
    }
    later[num_later++] = (struct made_later){event, resets};
}

/* With the lock: the resets that it was made after, taken off the list if it goes. */
static unsigned made_after(const void *event, bool goes)
{
    for (int i = num_later - 1; i >= 0; i--) {
        if (later[i].event == event) {
            unsigned resets = later[i].resets;
            if (goes) {
                later[i] = later[--num_later];
            }
            return resets;
        }
    }
    return 0;
}

xcclResult_t xm_event_take(const struct xc_device_ops *dev, int device, void **event_p)
{
    void    *event = NULL;
    unsigned resets = xc_device_resets(dev, device, false);

    pthread_mutex_lock(&lock);
    for (int i = num_idle - 1; (i >= 0) && (event == NULL); i--) {
        if ((idle[i].dev == dev) && (idle[i].device == device)) {
            bool dead = (idle[i].resets != resets);
            if (dead) {
                made_after(idle[i].event, true);
            }
            event = dead ? NULL : idle[i].event;
            idle[i] = idle[--num_idle];
        }
    }
    pthread_mutex_unlock(&lock);
    if (event != NULL) {
        *event_p = event;
        return xcclSuccess;
    }
    xcclResult_t res = dev->event_create(event_p);
    if ((res == xcclSuccess) && (resets > 0)) {
        pthread_mutex_lock(&lock);
        made_after(*event_p, true); /* the driver may use the address of a dead one again */
        list(*event_p, resets);
        pthread_mutex_unlock(&lock);
    }
    return res;
}

void xm_event_give(const struct xc_device_ops *dev, int device, void *event)
{
    unsigned resets = xc_device_resets(dev, device, false);

    if (event == NULL) {
        return;
    }
    pthread_mutex_lock(&lock);
    bool dead = (resets > 0) && (made_after(event, false) != resets);
    bool kept = !dead && (num_idle < MAX_EVENTS);
    if (kept) {
        idle[num_idle++] = (struct idle_event){dev, device, resets, event};
    } else if (resets > 0) {
        made_after(event, true);
    }
    pthread_mutex_unlock(&lock);
    if (!kept && !dead) {
        dev->event_destroy(event);
    }
}

void xm_events_finalize(void)
{
    void *saved;

    while (num_idle > 0) {
        struct idle_event *e = &idle[--num_idle];
        if (xc_device_enter_kept(e->dev, e->device, e->resets, &saved)) {
            e->dev->event_destroy(e->event);
            e->dev->leave(saved);
        }
    }
    free(later);
    later = NULL;
    num_later = room_later = 0;
}
