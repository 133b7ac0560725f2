/* Calls every function; with an argument, marks phases forever. */
#include "sweetspot_link.h"

int main(int count, char **arguments) {
    sweetspot_link link;
    char name[160];
    int i, opened = sweetspot_open(&link);
    (void)arguments;
    if (opened < 0) perror("sweetspot");
    while (count > 1) {
        sweetspot_begin(&link, "forever");
        sweetspot_end(&link, "forever");
    }
    sweetspot_begin(&link, "forward");
    sweetspot_end(&link, "forward");
    sweetspot_progress(&link, sweetspot_batch_size(&link, 32));
    sweetspot_batch(&link, sweetspot_batch_size(&link, 32), 0.25);
    sweetspot_latency(&link, 0.5);
    sweetspot_queue(&link, 3, 20);
    sweetspot_out_of_memory(&link, 64);
    sweetspot_value(&link, "accuracy", 0.76);
    sweetspot_phase_between(&link, "gpu", 5, 9);
    memset(name, 0, sizeof name);
    for (i = 0; i < 75; i++) strcat(name, "\303\251");
    sweetspot_begin(&link, name);
    sweetspot_end(&link, name);
    sweetspot_begin(&link, "");
    for (i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "n%d", i);
        sweetspot_begin(&link, name);
    }
    sweetspot_close(&link);
    sweetspot_progress(&link, 1);
    printf("opened %d\n", opened);
    return 0;
}
