/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks with unlike variables: the message names the one that most ranks do not agree with. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/params.h"
#include "check.h"
#include "comms/variables.h"

enum { MOST = 5, MEMORY = 4, TUNE = 2, SCRATCH = 5 };

static struct xm_variables ranks[MOST];

static const struct xm_variables *of(const void *all, int rank)
{
    return &((const struct xm_variables *)all)[rank];
}

/* A digit for each rank: its value of a variable; '-': a rank that is not known. */
static const char *judge(int variable, const char *values, const int *world_ranks)
{
    int n = 0;

    for (int r = 0; (r < MOST) && (values[r] != '\0'); r++, n++) {
        xm_variables_fill(&ranks[r]);
        ranks[r].values[variable] = (uint64_t)(values[r] - '0');
        if (values[r] == '-') {
            ranks[r] = (struct xm_variables){0};
        }
    }
    xcclResult_t res = xm_variables_judge(of, ranks, world_ranks, n);
    CHECK((res == xcclSuccess) || (res == xcclInvalidUsage), "result %d", (int)res);
    return (res == xcclSuccess) ? "" : xc_last_detail();
}

static void expect(int variable, const char *values, const int *world_ranks, const char *said)
{
    const char *message = judge(variable, values, world_ranks);

    CHECK((said[0] == '\0') ? (message[0] == '\0') : (strstr(message, said) == message),
          "%s: '%s' instead of '%s'", values, message, said);
}

static void test_majority(void)
{
    expect(SCRATCH, "5", NULL, "");
    expect(SCRATCH, "5555", NULL, "");
    expect(SCRATCH, "855", NULL, "XCCL_SCRATCH is '8' on rank 0, and '5' on most other ranks; ");
    expect(SCRATCH, "585", NULL, "XCCL_SCRATCH is '8' on rank 1, and '5' on most other ranks; ");
    expect(SCRATCH, "558", NULL, "XCCL_SCRATCH is '8' on rank 2, and '5' on most other ranks; ");
    expect(SCRATCH, "89555", NULL, "XCCL_SCRATCH is '8' on rank 0, and '5' on most other ranks; ");
    expect(SCRATCH, "58595", NULL, "XCCL_SCRATCH is '8' on rank 1, and '5' on most other ranks; ");
}

static void test_no_majority(void)
{
    expect(SCRATCH, "85", NULL, "XCCL_SCRATCH is '5' on rank 1, and '8' on rank 0; ");
    expect(SCRATCH, "5588", NULL, "XCCL_SCRATCH is '8' on rank 2, and '5' on rank 0; ");
    expect(SCRATCH, "567", NULL, "XCCL_SCRATCH is '6' on rank 1, and '5' on rank 0; ");
}

static void test_unknown(void)
{
    static const int world_ranks[] = {7, 3, 9, 4, 1};

    expect(SCRATCH, "-----", NULL, "");
    expect(SCRATCH, "--5--", NULL, "");
    expect(SCRATCH, "-85-5", world_ranks,
           "XCCL_SCRATCH is '8' on rank 3 of MPI_COMM_WORLD, and '5' on most other ranks; ");
    expect(SCRATCH, "-8--5", world_ranks,
           "XCCL_SCRATCH is '5' on rank 1 of MPI_COMM_WORLD, and '8' on rank 3; ");
}

static void test_values(void)
{
    char buf[16];

    expect(MEMORY, "010", NULL,
           "XCCL_MEMORY is 'mixed' on rank 1, and 'same' on most other ranks; ");
    xc_param_text("XCCL_CCL", 7, buf, sizeof(buf));
    CHECK(strcmp(buf, "none") == 0, "the last word: %s", buf);
    xc_param_text("XCCL_CCL", 8, buf, sizeof(buf));
    CHECK(strcmp(buf, "8") == 0, "no word: %s", buf);
    judge(TUNE, "55", NULL);
    ranks[1].values[TUNE]++;
    memset(ranks[1].tune, 'x', sizeof(ranks[1].tune) - 1);
    CHECK(xm_variables_judge(of, ranks, NULL, 2) == xcclInvalidUsage, "texts that differ");
    CHECK(strstr(xc_last_detail(), "xxx...' on rank 1, and '' on rank 0; ") != NULL, "%s",
          xc_last_detail());
}

int main(void)
{
    unsetenv("XCCL_TUNE");
    test_majority();
    test_no_majority();
    test_unknown();
    test_values();
    return xt_done("variables");
}
