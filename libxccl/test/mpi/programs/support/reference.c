/* SPDX-License-Identifier: BSD-3-Clause */
#include "reference.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

void *mt_reference(const char *name)
{
    static void *library = NULL;
    Dl_info      info;
    void        *address = dlsym(RTLD_DEFAULT, "PMPI_Comm_size"); /* which it does not take */

    if ((library == NULL) && (address != NULL) && (dladdr(address, &info) != 0)) {
        library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    }
    address = (library != NULL) ? dlsym(library, name) : NULL;
    if (address == NULL) {
        fprintf(stderr, "the MPI library has no %s\n", name);
        exit(70);
    }
    return address;
}
