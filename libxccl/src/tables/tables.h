/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tuning tables of this process: where they lie, and which are asked on a communicator.
 *
 * In this order: XCCL_TUNE; the files of XCCL_TABLE, or without it those of the site
 * (share/xccl/sites/<XCCL_SITE>/tables/) and those that come with xccl (share/xccl/tables/), by
 * their names; the built-in rows. Of the files only those whose conditions hold are asked.
 */
#ifndef XM_TABLES_TABLES_H
#define XM_TABLES_TABLES_H

#include "decide/table.h"

/* Where a table comes from. */
enum xm_origin { XM_FROM_TUNE, XM_FROM_VARIABLE, XM_FROM_SITE, XM_FROM_SHARE, XM_FROM_BUILTIN };

struct xm_source {
    enum xm_origin   origin;
    struct xm_table *table;
};

struct xm_tables {
    size_t            count;
    struct xm_source *sources; /* in the order in which they are asked */
    uint64_t          digest;  /* of all files: equal where the same tables were read */
};

/*
 * Read what the user names, XCCL_TUNE and XCCL_TABLE; a mistake in them is an error. installed: any
 * file of the installation, in lib/, lib/xccl/ or bin/: it leads to share/xccl.
 */
xcclResult_t xm_tables_begin(const char *installed);

/*
 * All tables; those of the site and of the installation are read at the first call. One with a
 * mistake is left out, with a warning.
 */
const struct xm_tables *xm_tables_all(void);
uint64_t                xm_tables_digest(void);
/* Has the installation a folder of sites, and none of XCCL_SITE's name in it? After the begin. */
bool xm_tables_lack_site(char *folder, size_t len);
/* What is wrong with the first that was left out, or NULL. */
const char *xm_tables_fault(void);

/*
 * The rules of a communicator, made once for each choice of tables and number of ranks, and kept
 * until xm_tables_end(). Before the ranks have agreed on the setting (nodes is 0), and where they
 * have not read the same files, those of XCCL_TUNE and the built-in rows alone.
 */
xcclResult_t xm_tables_rules(const struct xm_setting *setting, const struct xm_rules **rules_p);

/*
 * Has a file rows for communicators of one rank? Then only their setting tells whether it is asked.
 * The other tables need none.
 */
bool xm_tables_for_one_rank(void);

/*
 * Other rows in place of those of XCCL_TUNE; NULL: those again. Rules that were handed out stay
 * valid, but are not those in force any more.
 */
xcclResult_t xm_tables_tune(const char *text);

void xm_tables_end(void);

/* files.c */
/* The file's text, to be freed; the detail names the file. */
xcclResult_t xm_table_file_read(const char *path, char **text_p);
/* Parse a file. */
xcclResult_t xm_table_file_parse(const char *path, struct xm_table **table_p);
/* Paths of the *.table files of a folder, in the order of their names; none where it is missing. */
xcclResult_t xm_table_files_in(const char *folder, char ***paths_p, size_t *count_p);
void         xm_table_files_free(char **paths, size_t count);

#endif
