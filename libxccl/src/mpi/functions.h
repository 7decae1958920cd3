/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The MPI functions that are taken over, by number. No mpi.h here: the dispatcher has none.
 */
#ifndef XM_MPI_FUNCTIONS_H
#define XM_MPI_FUNCTIONS_H

#include <stdio.h>

#include "base/collectives.h"
#include "base/enqueued.h"
#include "base/transfers.h"

/* Those that carry no data: name, number of arguments. */
#define XM_OTHER_FUNCTIONS(X)                                                                      \
    X(MPI_Init, 2)                                                                                 \
    X(MPI_Init_thread, 4)                                                                          \
    X(MPI_Session_init, 3)                                                                         \
    X(MPI_Finalize, 0)                                                                             \
    X(MPI_Session_finalize, 1)                                                                     \
    X(MPI_Wait, 2)                                                                                 \
    X(MPI_Waitall, 3)                                                                              \
    X(MPI_Waitany, 4)                                                                              \
    X(MPI_Waitsome, 5)                                                                             \
    X(MPI_Test, 3)                                                                                 \
    X(MPI_Testall, 4)                                                                              \
    X(MPI_Testany, 5)                                                                              \
    X(MPI_Testsome, 5)                                                                             \
    X(MPI_Request_get_status, 3)                                                                   \
    X(MPI_Request_get_status_any, 5)                                                               \
    X(MPI_Request_get_status_all, 4)                                                               \
    X(MPI_Request_get_status_some, 5)                                                              \
    X(MPIX_Request_is_complete, 1)                                                                 \
    X(MPI_Request_free, 1)                                                                         \
    X(MPI_Cancel, 1)                                                                               \
    X(MPI_Pready, 2)                                                                               \
    X(MPI_Pready_range, 3)                                                                         \
    X(MPI_Pready_list, 3)                                                                          \
    X(MPI_Parrived, 3)                                                                             \
    X(MPI_Start, 1)                                                                                \
    X(MPI_Startall, 2)                                                                             \
    X(MPI_Win_post, 3)                                                                             \
    X(MPI_Win_wait, 1)                                                                             \
    X(MPI_Win_test, 2)                                                                             \
    X(MPI_Win_lock, 4)                                                                             \
    X(MPI_Win_lock_all, 2)                                                                         \
    X(MPI_Win_sync, 1)                                                                             \
    X(MPI_Win_free, 1)                                                                             \
    X(MPI_Win_get_attr, 4)                                                                         \
    X(MPI_Win_get_info, 2)                                                                         \
    X(MPI_File_get_info, 2)                                                                        \
    X(MPI_File_set_view, 6)                                                                        \
    X(MPI_Comm_spawn, 8)                                                                           \
    X(MPI_Comm_spawn_multiple, 9)                                                                  \
    X(MPI_Comm_create_keyval, 4)                                                                   \
    X(MPI_Comm_free_keyval, 1)                                                                     \
    X(MPI_Comm_get_info, 2)                                                                        \
    X(MPI_Session_get_info, 2)                                                                     \
    X(MPI_Keyval_create, 4)                                                                        \
    X(MPI_Keyval_free, 1)                                                                          \
    X(MPI_Comm_free, 1)                                                                            \
    X(MPI_Comm_disconnect, 1)                                                                      \
    X(MPI_Comm_idup, 3)                                                                            \
    X(MPI_Comm_idup_with_info, 4)                                                                  \
    X(MPI_Op_free, 1)                                                                              \
    X(MPI_Type_free, 1)                                                                            \
    X(MPI_Comm_dup, 2)                                                                             \
    X(MPI_Comm_dup_with_info, 3)                                                                   \
    X(MPI_Comm_split, 4)                                                                           \
    X(MPI_Comm_split_type, 5)                                                                      \
    X(MPI_Comm_create, 3)                                                                          \
    X(MPI_Cart_create, 6)                                                                          \
    X(MPI_Cart_sub, 3)                                                                             \
    X(MPI_Graph_create, 6)                                                                         \
    X(MPI_Dist_graph_create, 9)                                                                    \
    X(MPI_Dist_graph_create_adjacent, 10)                                                          \
    X(MPI_Buffer_detach, 2)                                                                        \
    X(MPI_Buffer_detach_c, 2)

/* Those by their profiling names alone: only MPI's functions for Fortran are answered. */
#define XM_PROFILING_FUNCTIONS(X) X(MPI_Request_c2f, 1)

/* Blocking, non-blocking, persistent. */
enum xm_form { XM_BLOCKING, XM_NONBLOCKING, XM_PERSISTENT, XM_NUM_FORMS };

/* Each collective has six functions in a row: its forms, each with int and with large counts. */
enum xm_function {
#define XM_SIX(name, small, capitals, n, ni, np, kinds)                                            \
    XM_FN_MPI_##name, XM_FN_MPI_##name##_c, XM_FN_MPI_I##small, XM_FN_MPI_I##small##_c,            \
        XM_FN_MPI_##name##_init, XM_FN_MPI_##name##_init_c,
    XM_COLLECTIVES(XM_SIX)
#undef XM_SIX
/* Then the transfers: those with counts have two functions each. */
#define XM_TWO(name, arguments, form, kinds) XM_FN_MPI_##name, XM_FN_MPI_##name##_c,
#define XM_ONE(name, arguments, form, kinds) XM_FN_MPI_##name,
        XM_TRANSFERS_WITH_COUNTS(XM_TWO) XM_TRANSFERS_WITHOUT_COUNTS(XM_ONE)
#undef XM_TWO
#undef XM_ONE
#define XM_ONE(name, arguments) XM_FN_##name,
            XM_OTHER_FUNCTIONS(XM_ONE) XM_PROFILING_FUNCTIONS(XM_ONE) XM_STREAM_FUNCTIONS(XM_ONE)
#undef XM_ONE
/* Each of these has two functions again. */
#define XM_COLL(name, capitals, arguments)                                                         \
    XM_FN_MPIX_##name##_enqueue, XM_FN_MPIX_##name##_enqueue_c,
#define XM_MESSAGE(name, arguments) XM_FN_MPIX_##name##_enqueue, XM_FN_MPIX_##name##_enqueue_c,
                XM_ENQUEUED_COLLECTIVES(XM_COLL) XM_ENQUEUED_MESSAGES(XM_MESSAGE)
#undef XM_COLL
#undef XM_MESSAGE
                    XM_NUM_FUNCTIONS
};

enum {
    XM_NUM_COLLECTIVE_FUNCTIONS = XM_NUM_COLLS * 2 * XM_NUM_FORMS,
#define XM_TWO(name, arguments, form, kinds) +2
#define XM_ONE(name, arguments, form, kinds) +1
    XM_NUM_TRANSFER_FUNCTIONS =
        0 XM_TRANSFERS_WITH_COUNTS(XM_TWO) XM_TRANSFERS_WITHOUT_COUNTS(XM_ONE)
#undef XM_TWO
#undef XM_ONE
};

/*
 * Before a device is in use a message that is to be fetched from one may still match a receive:
 * none; one that was begun without blocking; or any, since another thread may start the device.
 */
enum xm_watched { XM_WATCHED_NONE, XM_WATCHED_NONBLOCKING, XM_WATCHED_ALL };

static inline int xm_is_transfer(enum xm_function function)
{
    return ((int)function >= XM_NUM_COLLECTIVE_FUNCTIONS) &&
           ((int)function < XM_NUM_COLLECTIVE_FUNCTIONS + XM_NUM_TRANSFER_FUNCTIONS);
}

static inline int xm_is_stream_function(enum xm_function function)
{
    return (int)function >= (int)XM_FN_MPIX_Info_set_hex;
}

static inline enum xm_function xm_function_of(enum xm_coll coll, enum xm_form form, int large)
{
    return (enum xm_function)(2 * (XM_NUM_FORMS * (int)coll + (int)form) + (large ? 1 : 0));
}

/* The reverse, of a collective's function. */
static inline enum xm_coll xm_function_coll(enum xm_function function)
{
    return (enum xm_coll)((int)function / (2 * XM_NUM_FORMS));
}
static inline enum xm_form xm_function_form(enum xm_function function)
{
    return (enum xm_form)((int)function / 2 % XM_NUM_FORMS);
}

/* What there is to know of a function without mpi.h. */
struct xm_function_row {
    const char *name; /* "PMPI_Allreduce" */
    int         arguments;
};

/* The rows of all functions, for a table with XM_NUM_FUNCTIONS of them. */
#define XM_ROW_SIX(name, small, capitals, n, ni, np, kinds)                                        \
    [XM_FN_MPI_##name] = {"PMPI_" #name, n}, [XM_FN_MPI_##name##_c] = {"PMPI_" #name "_c", n},     \
    [XM_FN_MPI_I##small] = {"PMPI_I" #small, ni},                                                  \
    [XM_FN_MPI_I##small##_c] = {"PMPI_I" #small "_c", ni},                                         \
    [XM_FN_MPI_##name##_init] = {"PMPI_" #name "_init", np},                                       \
    [XM_FN_MPI_##name##_init_c] = {"PMPI_" #name "_init_c", np},
#define XM_ROW_TWO(name, n, form, kinds)                                                           \
    [XM_FN_MPI_##name] = {"PMPI_" #name, n}, [XM_FN_MPI_##name##_c] = {"PMPI_" #name "_c", n},
#define XM_ROW_ONE(name, n, form, kinds) [XM_FN_MPI_##name] = {"PMPI_" #name, n},
#define XM_ROW_OTHER(name, arguments) [XM_FN_##name] = {"P" #name, arguments},
#define XM_ROW_MESSAGE(name, n)                                                                    \
    [XM_FN_MPIX_##name##_enqueue] = {"PMPIX_" #name "_enqueue", n},                                \
    [XM_FN_MPIX_##name##_enqueue_c] = {"PMPIX_" #name "_enqueue_c", n},
#define XM_ROW_ENQUEUED(name, capitals, n) XM_ROW_MESSAGE(name, n)
#define XM_FUNCTION_ROWS                                                                           \
    XM_COLLECTIVES(XM_ROW_SIX)                                                                     \
    XM_TRANSFERS_WITH_COUNTS(XM_ROW_TWO)                                                           \
    XM_TRANSFERS_WITHOUT_COUNTS(XM_ROW_ONE)                                                        \
    XM_OTHER_FUNCTIONS(XM_ROW_OTHER)                                                               \
    XM_PROFILING_FUNCTIONS(XM_ROW_OTHER)                                                           \
    XM_STREAM_FUNCTIONS(XM_ROW_OTHER)                                                              \
    XM_ENQUEUED_COLLECTIVES(XM_ROW_ENQUEUED)                                                       \
    XM_ENQUEUED_MESSAGES(XM_ROW_MESSAGE)

/*
 * Open MPI 4.1 has its persistent collectives as an extension: "PMPIX_Allreduce_init" is the other
 * name of "PMPI_Allreduce_init". False: the function has none.
 */
static inline int xm_extension_name(enum xm_function function, const char *name, char *buf,
                                    size_t size)
{
    int persistent = ((int)function < XM_NUM_COLLECTIVE_FUNCTIONS) &&
                     ((int)function % (2 * XM_NUM_FORMS) == 2 * (int)XM_PERSISTENT);

    return persistent && (snprintf(buf, size, "PMPIX_%s", name + sizeof("PMPI_") - 1) < (int)size);
}

/* Call any function whose arguments are integers, pointers or handles. See entries/dispatch.c. */
static inline long xm_invoke(void (*function)(void), int n, const long *a)
{
    typedef long (*f0)(void);
    typedef long (*f1)(long);
    typedef long (*f2)(long, long);
    typedef long (*f3)(long, long, long);
    typedef long (*f4)(long, long, long, long);
    typedef long (*f5)(long, long, long, long, long);
    typedef long (*f6)(long, long, long, long, long, long);
    typedef long (*f7)(long, long, long, long, long, long, long);
    typedef long (*f8)(long, long, long, long, long, long, long, long);
    typedef long (*f9)(long, long, long, long, long, long, long, long, long);
    typedef long (*f10)(long, long, long, long, long, long, long, long, long, long);
    typedef long (*f11)(long, long, long, long, long, long, long, long, long, long, long);
    typedef long (*f12)(long, long, long, long, long, long, long, long, long, long, long, long);
    typedef long (*f13)(long, long, long, long, long, long, long, long, long, long, long, long,
                        long);

    switch (n) {
    case 0:
        return ((f0)function)();
    case 1:
        return ((f1)function)(a[0]);
    case 2:
        return ((f2)function)(a[0], a[1]);
    case 3:
        return ((f3)function)(a[0], a[1], a[2]);
    case 4:
        return ((f4)function)(a[0], a[1], a[2], a[3]);
    case 5:
        return ((f5)function)(a[0], a[1], a[2], a[3], a[4]);
    case 6:
        return ((f6)function)(a[0], a[1], a[2], a[3], a[4], a[5]);
    case 7:
        return ((f7)function)(a[0], a[1], a[2], a[3], a[4], a[5], a[6]);
    case 8:
        return ((f8)function)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]);
    case 9:
        return ((f9)function)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8]);
    case 10:
        return ((f10)function)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9]);
    case 11:
        return ((f11)function)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10]);
    case 12:
        return ((f12)function)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10],
                               a[11]);
    default:
        return ((f13)function)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10],
                               a[11], a[12]);
    }
}

#endif
