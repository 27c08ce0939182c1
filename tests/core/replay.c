/* Replays samples through an exported file: robot.c and robot.h, with rows.bin beside it and states.bin after it.
 *
 * rows.bin holds doubles: the number of samples, where contacts come from, whether a start is given, the start
 * (quaternion, velocity, position, angular rate), and the samples as gait_run takes them. states.bin holds the states.
 * With -DREPLAY_STACK the program also prints how many bytes of stack and of memory the estimator takes. */
#include "robot.h"

#include <stdio.h>
#include <stdlib.h>

enum { BEFORE = 16, ROW = 7 + 4 * GAIT_MAX_JOINTS + 3 * GAIT_MAX_LEGS };

#ifdef REPLAY_STACK
void stack_paint(void);
unsigned long stack_used(void);
#endif

static gait_storage storage;

static double *read_rows(size_t *n)
{
    double before[BEFORE], *rows;
    FILE *file = fopen("rows.bin", "rb");
    if (!file || fread(before, sizeof(double), BEFORE, file) != BEFORE) exit(2);
    *n = (size_t)before[0];
    rows = malloc((BEFORE + *n * ROW) * sizeof(double));
    if (!rows) exit(3);
    for (int i = 0; i < BEFORE; i++) rows[i] = before[i];
    if (fread(rows + BEFORE, sizeof(double), *n * ROW, file) != *n * ROW) exit(4);
    fclose(file);
    return rows;
}

int main(void)
{
    size_t n;
    double *rows = read_rows(&n);
    const double *start = rows + 3;
    const size_t width = gait_state_doubles(&gait_robot_config);
    double *states = malloc(n * width * sizeof(double));
    if (!states || gait_row_doubles(&gait_robot_config) != ROW || sizeof(gait_output) != width * sizeof(double)
        || gait_bytes(&gait_robot_config) > sizeof storage)
        return 5;
#ifdef REPLAY_STACK
    stack_paint();
#endif
    gait_t *g = gait_init(&storage, &gait_robot_config);
    gait_set_contact_source(g, (int)rows[1]);
    if (rows[2] > 0.0) gait_reset(g, start, start + 4, start + 7, start + 10, NULL);
    gait_run(g, rows + BEFORE, n, states);
#ifdef REPLAY_STACK
    printf("stack %lu memory %lu\n", stack_used(), (unsigned long)gait_bytes(&gait_robot_config));
#endif
    FILE *file = fopen("states.bin", "wb");
    if (!file || fwrite(states, sizeof(double), n * width, file) != n * width || fclose(file)) return 6;
    free(states);
    free(rows);
    return 0;
}
