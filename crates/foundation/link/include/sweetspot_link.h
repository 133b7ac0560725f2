/* Reports phases, items and values of a C program to sweetspot. Needs C99, Linux, and GCC or Clang; there is no
 * library to link. Include it before other headers. Each thread needs its own sweetspot_link, and so does a forked
 * child. If SWEETSPOT_LINK is not set, or opening failed, every call does nothing. docs/reference/link.md describes the
 * layout. */
#ifndef SWEETSPOT_LINK_H
#define SWEETSPOT_LINK_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SWSP_HEADER = 256, SWSP_SLOT = 128, SWSP_SLOTS = 256, SWSP_RECORD = 32, SWSP_CONTROL = 320 };

typedef struct {
    unsigned char *map;      /* the ring; NULL if there is no link */
    const uint64_t *control; /* the tool's control words, after a header of eight words */
    uint64_t capacity, next, limit, lost, reported_size, too_large;
    uint32_t names;
} sweetspot_link;

static inline uint64_t sweetspot_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
static inline uint64_t *swsp_word(sweetspot_link *l, size_t at) { return (uint64_t *)(void *)(l->map + at); }
static inline void swsp_put(sweetspot_link *l, size_t at, uint64_t v) { __atomic_store_n(swsp_word(l, at), v, __ATOMIC_RELEASE); }
static inline uint64_t swsp_get(sweetspot_link *l, size_t at) { return __atomic_load_n(swsp_word(l, at), __ATOMIC_ACQUIRE); }

static inline char *swsp_text(const char *path, char *text, int size) {
    FILE *file = fopen(path, "re");
    char *got = file ? fgets(text, size, file) : NULL;
    if (file) fclose(file);
    return got;
}
static inline void swsp_describe(unsigned char *map, uint32_t capacity) {
    static const char *const ranks[] = {"RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "LOCAL_RANK"};
    uint32_t ids[] = {(uint32_t)getpid(), (uint32_t)syscall(SYS_gettid)}, rank = UINT32_MAX, i;
    uint64_t marks[] = {0, 0}; /* start time of the thread, pid namespace */
    char text[1024], *at, *end;
    unsigned long value;
    struct stat about;
    for (i = 0; i < 4 && rank == UINT32_MAX; i++)
        if ((at = getenv(ranks[i])) && *at >= '0' && *at <= '9' && (value = strtoul(at, &end, 10)) < UINT32_MAX && !*end)
            rank = (uint32_t)value;
    const uint32_t numbers[] = {1, SWSP_HEADER, SWSP_RECORD, capacity, SWSP_SLOTS, SWSP_SLOT, 1, rank};
    if ((at = swsp_text("/proc/sys/kernel/random/boot_id", text, sizeof text)))
        for (i = 0; *at && i < 32; at++)
            if (*at != '-') map[40 + i / 2] |= (unsigned char)((*at <= '9' ? *at - '0' : *at - 'a' + 10) << (i % 2 ? 0 : 4)), i++;
    /* Fields 3 to 22 of proc(5) follow the name, which may contain anything. */
    if (swsp_text("/proc/thread-self/stat", text, sizeof text) && (at = strrchr(text, ')'))) {
        for (i = 0; i < 20 && at; i++) at = strchr(at + 1, ' ');
        if (at) marks[0] = strtoull(at, NULL, 10);
    }
    if (!stat("/proc/self/ns/pid", &about)) marks[1] = about.st_ino;
    memcpy(map, "SWSPRING", 8), memcpy(map + 8, numbers, sizeof numbers), memcpy(map + 56, ids, sizeof ids);
    memcpy(map + 64, marks, sizeof marks), memcpy(map + SWSP_HEADER, "\015(other names)", 14);
}

/* Opens the link. Returns 0 on success, 1 if there is no link, -1 with errno set if it cannot be used. */
static inline int sweetspot_open(sweetspot_link *l) {
    const char *folder = getenv("SWEETSPOT_LINK");
    char draft[4096], name[4096];
    struct stat about;
    uint32_t n[4]; /* version, header length, words, capacity */
    memset(l, 0, sizeof *l);
    if (!folder || !*folder) return 1;
    snprintf(name, sizeof name, "%s/control", folder);
    int fd = open(name, O_RDONLY | O_CLOEXEC), error = 0;
    if (fd < 0) return -1;
    void *map = fstat(fd, &about) || about.st_size != SWSP_CONTROL ? MAP_FAILED : mmap(NULL, SWSP_CONTROL, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (map == MAP_FAILED) return errno = EPROTO, -1;
    memcpy(n, (char *)map + 8, sizeof n);
    if (memcmp(map, "SWSPCTRL", 8) || n[0] != 1 || n[1] != 64 || n[2] != 32 || n[3] < 64 || n[3] > 1u << 20 || (n[3] & (n[3] - 1)))
        return munmap(map, SWSP_CONTROL), errno = EPROTO, -1;
    size_t length = SWSP_HEADER + SWSP_SLOTS * SWSP_SLOT + (size_t)n[3] * SWSP_RECORD;
    long tid = syscall(SYS_gettid);
    unsigned long long now = sweetspot_now();
    void *ring = MAP_FAILED;
    snprintf(draft, sizeof draft, "%s/.ring-%ld-%ld-%llu", folder, (long)getpid(), tid, now);
    snprintf(name, sizeof name, "%s/ring-%ld-%ld-%llu", folder, (long)getpid(), tid, now);
    if ((fd = open(draft, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) < 0 || (error = posix_fallocate(fd, 0, (off_t)length)) ||
        (ring = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0)) == MAP_FAILED ||
        (swsp_describe((unsigned char *)ring, n[3]), rename(draft, name)))
        error = error ? error : errno;
    if (fd >= 0) close(fd);
    if (error && ring != MAP_FAILED) munmap(ring, length);
    if (error) return unlink(draft), munmap(map, SWSP_CONTROL), errno = error, -1;
    l->map = (unsigned char *)ring, l->control = (const uint64_t *)map, l->capacity = l->limit = n[3], l->names = 1;
    return 0;
}
static inline void swsp_record(sweetspot_link *l, uint32_t kind, uint32_t name, uint64_t at, uint64_t value) {
    if (!l->map) return;
    if (l->next >= l->limit) { /* two different words are half written */
        uint64_t first = swsp_get(l, 192), second = swsp_get(l, 200);
        if (first == second && first <= l->next) l->limit = first + l->capacity;
        if (l->next >= l->limit) { swsp_put(l, 128, ++l->lost); return; }
    }
    size_t place = SWSP_HEADER + SWSP_SLOTS * SWSP_SLOT + (size_t)(l->next & (l->capacity - 1)) * SWSP_RECORD;
    swsp_put(l, place, at), swsp_put(l, place + 8, value), swsp_put(l, place + 16, name | kind << 16 | l->lost << 32);
    swsp_put(l, place + 24, ++l->next); /* written last: it marks the record as complete */
}
static inline uint32_t swsp_name(sweetspot_link *l, const char *name) {
    size_t length = strlen(name);
    if (!l->map || !length) return 0;
    if (length > SWSP_SLOT - 1) /* truncate at a UTF-8 character */
        for (length = SWSP_SLOT - 1; ((unsigned char)name[length] & 0xc0) == 0x80 && length > 1;) length--;
    for (uint32_t i = 0; i < l->names; i++) {
        unsigned char *slot = l->map + SWSP_HEADER + i * SWSP_SLOT;
        if (slot[0] == length && !memcmp(slot + 1, name, length)) return i;
    }
    if (l->names == SWSP_SLOTS) return swsp_put(l, 136, swsp_get(l, 136) + 1), 0u;
    memcpy(l->map + SWSP_HEADER + l->names * SWSP_SLOT + 1, name, length);
    l->map[SWSP_HEADER + l->names * SWSP_SLOT] = (unsigned char)length;
    return l->names++;
}

static inline void sweetspot_begin(sweetspot_link *l, const char *name) { swsp_record(l, 1, swsp_name(l, name), sweetspot_now(), 0); }
static inline void sweetspot_end(sweetspot_link *l, const char *name) { swsp_record(l, 2, swsp_name(l, name), sweetspot_now(), 0); }
static inline void sweetspot_progress(sweetspot_link *l, uint64_t items) { swsp_record(l, 3, 0, sweetspot_now(), items); }
static inline void sweetspot_value(sweetspot_link *l, const char *name, double value) {
    uint64_t bits = 0;
    swsp_record(l, 4, swsp_name(l, name), sweetspot_now(), *(uint64_t *)memcpy(&bits, &value, 8));
}
static inline void sweetspot_phase_between(sweetspot_link *l, const char *name, uint64_t begin, uint64_t end) {
    swsp_record(l, 5, swsp_name(l, name), begin, end);
}
/* Returns the batch size that the tool wants next, or the default. Call it before each batch. The tool is told once
 * for each size that the program asked. A size that did not fit is not returned again, even before the tool knows. */
static inline uint64_t sweetspot_batch_size(sweetspot_link *l, uint64_t default_size) {
    uint64_t size = l->control ? __atomic_load_n(&l->control[8], __ATOMIC_ACQUIRE) : 0;
    if (l->too_large && size >= l->too_large) size = l->too_large > 1 ? l->too_large / 2 : 1;
    if (size && size != l->reported_size) sweetspot_value(l, "batch_size", (double)(l->reported_size = size));
    return size ? size : default_size;
}
/* Reports a finished batch: its number of items and its time in seconds. */
static inline void sweetspot_batch(sweetspot_link *l, uint64_t items, double seconds) {
    sweetspot_value(l, "batch_s", seconds), sweetspot_progress(l, items);
}
/* Reports the time from a request's arrival to its answer: of each request, or of the slowest of a batch. */
static inline void sweetspot_latency(sweetspot_link *l, double seconds) { sweetspot_value(l, "latency_s", seconds); }
/* Reports the number of waiting requests, and the number that arrive per second. */
static inline void sweetspot_queue(sweetspot_link *l, uint64_t length, double arrivals_per_s) {
    sweetspot_value(l, "queue_length", (double)length), sweetspot_value(l, "arrivals_per_s", arrivals_per_s);
}
/* Reports that a batch of this size does not fit into memory. */
static inline void sweetspot_out_of_memory(sweetspot_link *l, uint64_t batch) {
    if (batch && (!l->too_large || batch < l->too_large)) l->too_large = batch;
    sweetspot_value(l, "out_of_memory", (double)batch);
}
static inline void sweetspot_close(sweetspot_link *l) {
    if (!l->map) return;
    swsp_put(l, 144, 1);
    munmap(l->map, SWSP_HEADER + SWSP_SLOTS * SWSP_SLOT + l->capacity * SWSP_RECORD);
    munmap((void *)(uintptr_t)l->control, SWSP_CONTROL);
    memset(l, 0, sizeof *l);
}
#endif
