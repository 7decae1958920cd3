/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes that were started beside this one, such as the other ranks of a node: a launcher starts
 * all of them. To look at these takes a fraction of a millisecond, at all processes of a machine
 * several.
 */
#ifndef XM_COMMS_RELATIVES_H
#define XM_COMMS_RELATIVES_H

/* pid: the name of its folder in /proc. */
typedef void xm_relative(void *arg, const char *pid);

/*
 * With 1 the children of this one's parent, itself among them; with 2 the grandchildren of its
 * grandparent: where a shell starts each rank. None where Linux does not say
 * (CONFIG_PROC_CHILDREN).
 */
void xm_relatives_each(int generations, xm_relative *visit, void *arg);

#endif
