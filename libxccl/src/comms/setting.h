/* SPDX-License-Identifier: BSD-3-Clause */
/* What the ranks of a communicator have in common, which tuning tables ask for. */
#ifndef XM_COMMS_SETTING_H
#define XM_COMMS_SETTING_H

#include "comms/comm.h"

/* A rank's part. */
struct xm_peer_setting {
    char     gpu[96];
    uint64_t tables; /* digest of the files that were read */
    int32_t  fabric, gpu_aware;
};
void xm_setting_fill(const struct xc_device_ops *dev, int device, struct xm_peer_setting *mine);
/* Before the ranks have agreed. */
void xm_setting_begin(struct xm_setting *setting, int nranks);
/* hosts: a number of each rank's node, which is sorted; setting_of: finds a rank's part. */
void xm_setting_agree(struct xm_comm *xm, uint64_t *hosts,
                      const struct xm_peer_setting *(*setting_of)(const void *all, int rank),
                      const void *all);

/* The same, where all ranks' parts are like this one; nodes: how many there are. */
void xm_setting_alike(struct xm_comm *xm, const struct xm_peer_setting *mine, int nodes,
                      int per_node_least, int per_node_most);
/* A number that is equal where two parts are. */
uint64_t xm_setting_hash(const struct xm_peer_setting *of);

/* A digest of the tuning tables that this rank has read; set before the first call. */
extern uint64_t (*xm_comm_tables)(void);

#endif
