/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program is by its file: which MPI it is linked with or holds, and what a script sets. */
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bind.h"

/* A file in memory: nothing of it is believed before it was seen to lie within. */
struct image {
    const unsigned char *at;
    size_t               bytes;
};

static bool holds(const struct image *image, uint64_t offset, uint64_t bytes)
{
    return (offset <= image->bytes) && (bytes <= image->bytes - offset);
}

static bool is_elf(const struct image *image)
{
    return holds(image, 0, sizeof(Elf64_Ehdr)) && (memcmp(image->at, ELFMAG, SELFMAG) == 0) &&
           (image->at[EI_CLASS] == ELFCLASS64);
}

/* One of a table of headers that begins at an offset of the file; false: it is not there. */
static bool read_header(const struct image *image, uint64_t table, unsigned i, void *to,
                        size_t bytes)
{
    uint64_t offset = table + (uint64_t)i * bytes;

    if ((offset < table) || !holds(image, offset, bytes)) {
        return false;
    }
    memcpy(to, image->at + offset, bytes);
    return true;
}

static bool program_header(const struct image *image, unsigned i, Elf64_Phdr *header_p)
{
    Elf64_Ehdr file;

    memcpy(&file, image->at, sizeof(file));
    return (i < file.e_phnum) && (file.e_phentsize == sizeof(*header_p)) &&
           read_header(image, file.e_phoff, i, header_p, sizeof(*header_p));
}

static bool section_header(const struct image *image, unsigned i, Elf64_Shdr *header_p)
{
    Elf64_Ehdr file;

    memcpy(&file, image->at, sizeof(file));
    return (i < file.e_shnum) && (file.e_shentsize == sizeof(*header_p)) &&
           read_header(image, file.e_shoff, i, header_p, sizeof(*header_p));
}

/* Where in the file an address of the program lies. */
static bool offset_of(const struct image *image, uint64_t address, uint64_t *offset_p)
{
    Elf64_Phdr header;

    for (unsigned i = 0; program_header(image, i, &header); i++) {
        if ((header.p_type == PT_LOAD) && (address >= header.p_vaddr) &&
            (address - header.p_vaddr < header.p_filesz)) {
            *offset_p = header.p_offset + (address - header.p_vaddr);
            return true;
        }
    }
    return false;
}

/* The name of a library in the table of strings, or NULL. */
static const char *text_at(const struct image *image, uint64_t offset)
{
    if (!holds(image, offset, 1) ||
        (memchr(image->at + offset, '\0', image->bytes - offset) == NULL)) {
        return NULL;
    }
    return (const char *)image->at + offset;
}

static enum mpi mpi_of_library(const char *name)
{
    static const struct {
        const char *begins;
        enum mpi    mpi;
    } known[] = {
        {"libmpich", MPI_MPICH},       {"libmpifort", MPI_MPICH},
        {"libmpi.so.12", MPI_MPICH},   {"libmpi_cray", MPI_MPICH},
        {"libmpi_gnu_", MPI_MPICH},    {"libmpi_intel", MPI_MPICH},
        {"libmpi_nvidia", MPI_MPICH},  {"libmpi_amd", MPI_MPICH},
        {"libmpi_mpifh", MPI_OPENMPI}, {"libmpi_usempi", MPI_OPENMPI},
        {"libmpi.so.20", MPI_OPENMPI}, {"libmpi.so.40", MPI_OPENMPI},
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strncmp(name, known[i].begins, strlen(known[i].begins)) == 0) {
            return known[i].mpi;
        }
    }
    return MPI_UNKNOWN;
}

static bool has_header(const struct image *image, uint32_t type, Elf64_Phdr *header_p)
{
    for (unsigned i = 0; program_header(image, i, header_p); i++) {
        if (header_p->p_type == type) {
            return true;
        }
    }
    return false;
}

static enum mpi mpi_of_image(const struct image *image)
{
    Elf64_Phdr dynamic;
    Elf64_Dyn  entry;
    uint64_t   strings = 0, table;
    enum mpi   found = MPI_UNKNOWN;

    if (!has_header(image, PT_DYNAMIC, &dynamic) ||
        !holds(image, dynamic.p_offset, dynamic.p_filesz)) {
        return MPI_UNKNOWN; /* linked statically */
    }
    uint64_t count = dynamic.p_filesz / sizeof(entry);
    for (int pass = 0; pass < 2; pass++) { /* the table of strings may come behind the names */
        for (uint64_t i = 0; i < count; i++) {
            memcpy(&entry, image->at + dynamic.p_offset + i * sizeof(entry), sizeof(entry));
            if (entry.d_tag == DT_STRTAB) {
                strings = entry.d_un.d_ptr;
            } else if ((pass == 1) && (entry.d_tag == DT_NEEDED) && (found == MPI_UNKNOWN) &&
                       offset_of(image, strings + entry.d_un.d_val, &table)) {
                const char *name = text_at(image, table);
                found = (name != NULL) ? mpi_of_library(name) : MPI_UNKNOWN;
            }
        }
    }
    return found;
}

/*
 * A tool's wrapper inside a program defines MPI_Init, but leaves these to MPI. In a static library
 * each is an object of its own, so a program holds the one that it calls.
 */
static bool starts_mpi(const char *name, uint64_t room)
{
    static const char *const starts[] = {"PMPI_Init", "PMPI_Init_thread", "PMPI_Session_init"};

    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
        size_t bytes = strlen(starts[i]) + 1;
        if ((bytes <= room) && (memcmp(name, starts[i], bytes) == 0)) {
            return true;
        }
    }
    return false;
}

static bool table_has_mpi(const struct image *image, const Elf64_Shdr *table)
{
    Elf64_Shdr strings;
    Elf64_Sym  symbol;

    if (((table->sh_type != SHT_SYMTAB) && (table->sh_type != SHT_DYNSYM)) ||
        !holds(image, table->sh_offset, table->sh_size) ||
        !section_header(image, table->sh_link, &strings) ||
        !holds(image, strings.sh_offset, strings.sh_size)) {
        return false;
    }
    const char *names = (const char *)image->at + strings.sh_offset;
    for (uint64_t i = 0; i < table->sh_size / sizeof(symbol); i++) {
        memcpy(&symbol, image->at + table->sh_offset + i * sizeof(symbol), sizeof(symbol));
        /* The value is no sign of a definition: it may be the place of a call to a library. */
        if ((symbol.st_shndx != SHN_UNDEF) && (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC) &&
            (symbol.st_name < strings.sh_size) &&
            starts_mpi(names + symbol.st_name, strings.sh_size - symbol.st_name)) {
            return true;
        }
    }
    return false;
}

/* A program in memory, until it is closed; false if the file is none. */
static bool open_program(const char *path, struct image *image_p)
{
    struct stat status;
    int         fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0) {
        return false;
    }
    void *at = MAP_FAILED;
    if ((fstat(fd, &status) == 0) && S_ISREG(status.st_mode) && (status.st_size > 0)) {
        at = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    }
    close(fd);
    if (at == MAP_FAILED) {
        return false;
    }
    *image_p = (struct image){at, (size_t)status.st_size};
    if (!is_elf(image_p)) {
        munmap(at, image_p->bytes);
        return false;
    }
    return true;
}

static void close_program(const struct image *image)
{
    munmap((void *)image->at, image->bytes);
}

/* The file that a command stands for; false if there is none. */
static bool find_file(const char *command, char file_p[PATH_MAX])
{
    const char *path = getenv("PATH");

    if (strchr(command, '/') != NULL) {
        return snprintf(file_p, PATH_MAX, "%s", command) < PATH_MAX;
    }
    while ((path != NULL) && (*path != '\0')) {
        size_t n = strcspn(path, ":");
        int    written = snprintf(file_p, PATH_MAX, "%.*s/%s", (int)n, path, command);
        if ((written > 0) && (written < PATH_MAX) && (access(file_p, X_OK) == 0)) {
            return true;
        }
        path += n + ((path[n] == ':') ? 1 : 0);
    }
    return false;
}

enum mpi program_mpi(const char *command)
{
    char         file[PATH_MAX];
    struct image image;

    if (!find_file(command, file) || !open_program(file, &image)) {
        return MPI_UNKNOWN;
    }
    enum mpi mpi = mpi_of_image(&image);
    close_program(&image);
    return mpi;
}

bool program_is_static(const char *command)
{
    char         file[PATH_MAX];
    struct image image;
    Elf64_Phdr   header;

    if (!find_file(command, file) || !open_program(file, &image)) {
        return false;
    }
    bool fixed = has_header(&image, PT_LOAD, &header) && !has_header(&image, PT_INTERP, &header);
    close_program(&image);
    return fixed;
}

bool program_has_mpi(const char *command)
{
    char         file[PATH_MAX];
    struct image image;
    Elf64_Shdr   table;
    bool         found = false;

    if (!find_file(command, file) || !open_program(file, &image)) {
        return false;
    }
    for (unsigned i = 0; !found && section_header(&image, i, &table); i++) {
        found = table_has_mpi(&image, &table);
    }
    close_program(&image);
    return found;
}

bool program_is_elf(const char *command, char file_p[PATH_MAX])
{
    char magic[SELFMAG] = "";
    int  fd = find_file(command, file_p) ? open(file_p, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;

    if (fd < 0) {
        return false;
    }
    bool elf = (read(fd, magic, sizeof(magic)) == (ssize_t)sizeof(magic)) &&
               (memcmp(magic, ELFMAG, SELFMAG) == 0);
    close(fd);
    return elf;
}

/* NAME=..., or setenv NAME: in words of a shell, and not a longer name. */
static bool text_sets(const char *text, const char *variable)
{
    static const char csh[] = "setenv ";
    size_t            n = strlen(variable), before = strlen(csh);

    for (const char *at = strstr(text, variable); at != NULL; at = strstr(at + n, variable)) {
        bool begins = (at == text) || (strchr(" \t\n;&(\"'", at[-1]) != NULL);
        bool by_csh = ((size_t)(at - text) >= before) && (strncmp(at - before, csh, before) == 0);
        if (begins && ((at[n] == '=') || (by_csh && (strchr(" \t", at[n]) != NULL)))) {
            return true;
        }
    }
    return false;
}

static bool file_sets(const char *path, const char *variable)
{
    static char text[64 << 10]; /* scripts are shorter */
    struct stat status;
    ssize_t     n = -1;
    int         fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0) {
        return false;
    }
    if ((fstat(fd, &status) == 0) && S_ISREG(status.st_mode)) {
        n = read(fd, text, sizeof(text) - 1);
    }
    close(fd);
    text[(n > 0) ? n : 0] = '\0';
    return (n > 0) && (strncmp(text, ELFMAG, SELFMAG) != 0) && text_sets(text, variable);
}

/* Up to the program itself, which is no script; a shell and env come before theirs. */
bool program_sets(char *const *command, const char *variable)
{
    enum { MOST_WORDS = 16 };
    char file[PATH_MAX];

    for (int i = 0; (i < MOST_WORDS) && (command[i] != NULL); i++) {
        if (text_sets(command[i], variable)) {
            return true;
        }
        bool names = (i == 0) ? find_file(command[i], file)
                              : (snprintf(file, sizeof(file), "%s", command[i]) < PATH_MAX);
        if (names && file_sets(file, variable)) {
            return true;
        }
    }
    return false;
}
