/* SPDX-License-Identifier: BSD-3-Clause */
/* What the stand-ins for the vendors' libraries offer to tests beside the vendor's API. */
#ifndef XT_FAKE_H
#define XT_FAKE_H

/* Calls since the last clear, one text each: "ncclSend(count=3,type=7,peer=1)". */
typedef int (*fake_count_t)(void);
typedef const char *(*fake_get_t)(int i);
typedef void (*fake_clear_t)(void);
/* Result of every following call of this symbol; 0 is success. */
typedef void (*fake_fail_t)(const char *symbol, int result);
/* Let ncclAllReduce wait until some thread calls ncclCommAbort. */
typedef void (*fake_block_t)(int on);
/* Does it wait? */
typedef int (*fake_waits_t)(void);

#endif
