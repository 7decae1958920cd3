/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread for the time that the program spends elsewhere. */
#ifndef XM_TRANSFERS_WATCHER_H
#define XM_TRANSFERS_WATCHER_H

#include "transfers/rendezvous.h"

/* Look after a transfer until it is forgotten. */
void xm_watch(struct xm_transfer *t);
void xm_unwatch(struct xm_transfer *t);
/* How many receives are there? */
int xm_watched_receives(void);
/* In every so many rounds over all receives MPI is asked for each of them. */
unsigned xm_watch_pause(void);
/* A thread of the program's looks after transfers itself just now. */
void xm_watch_looked(void);
/* It has looked at so many that are not over: and at others, if there are more. */
void xm_watch_others(int looked);
/* One of so many bytes was begun: many may be, before the first is waited for, and the link would
 * be idle. */
void xm_watch_posted(uint64_t bytes);
/* In there, on this thread: more may follow. */
bool xm_watch_is_posting(void);
/* Something of a message that MPI carries in pieces has moved: more will soon. */
void xm_watch_moved(void);
/*
 * Receives that are no transfers yet: how many there are, atomic and sequentially consistent; and a
 * look at some, which makes transfers of those to which a descriptor has come. True at the end.
 */
struct xm_watch_too {
    int (*count)(void);
    bool (*look)(void);
};
/* One more is there: look after them, too. */
void xm_watch_too(const struct xm_watch_too *more);
void xm_watcher_end(void);

#endif
