/* Samples straight out of numpy arrays: a step of the estimator in one call from Python.
 *
 * Nothing here needs Python's headers or library. The functions of the interpreter that it calls belong to Python's
 * stable ABI, and the binding hands them over (`gait.binding.CPython`). What it cannot read, such as lists or integers,
 * it leaves to the binding, which converts or refuses it. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "../gait.h"

/* Py_buffer of the stable ABI. */
typedef struct {
    void *buf, *obj;
    ptrdiff_t len, itemsize;
    int readonly, ndim;
    char *format;
    ptrdiff_t *shape, *strides, *suboffsets;
    void *internal;
} python_buffer;

typedef struct {
    int (*get_buffer)(void *object, python_buffer *view, int flags);
    void (*release_buffer)(python_buffer *view);
    void *(*tuple_item)(void *tuple, ptrdiff_t index);
    double (*as_double)(void *number);
    void *(*error)(void);
    void (*clear_error)(void);
    void *none;
    /* The estimator, its configuration, a row for its sample, and room for state and covariance. */
    gait_t *estimator;
    const gait_config *config;
    double *row, *state_and_cov;
    /* How many joints come, and where the robot's stand among them. */
    int width;
    const int *order;
} gait_python;

/* PyBUF_FORMAT | PyBUF_ND: contiguous, with a shape and a type. */
enum { CONTIGUOUS = 0x0004 | 0x0008, FIELDS = 8, REQUIRED = 4 };

/* Numbers of an array of the given size, all of them or those that are wanted. */
static int copy_numbers(const python_buffer *view, int size, const int *wanted, int count, double *to)
{
    if (view->ndim != 1 || view->shape[0] != size || !view->format || strlen(view->format) != 1) return 0;
#define COPY(type) for (int i = 0; i < count; i++) to[i] = ((const type *)view->buf)[wanted ? wanted[i] : i]
    switch (view->format[0]) {
    case 'd': COPY(double); return 1;
    case 'f': COPY(float); return 1;
    case '?': COPY(unsigned char); return 1;
    }
#undef COPY
    return 0;
}

static int copy_field(const gait_python *python, void *object, int by_joint, int count, double *to)
{
    python_buffer view;
    if (python->get_buffer(object, &view, CONTIGUOUS)) {
        python->clear_error();
        return 0;
    }
    const int copied = copy_numbers(&view, by_joint ? python->width : count, by_joint ? python->order : NULL, count, to);
    python->release_buffer(&view);
    return copied;
}

/* A step on a tuple of stamp, gyro, accel, q, dq, q_des, tau, foot_force and contact, of which the last four may be None.
 * Returns 0, with no step done, if something in it is not an array of the right size. */
int gait_step_python(const gait_python *python, void *sample)
{
    const int joints = python->config->robot.joints, legs = python->config->robot.legs;
    const int counts[FIELDS] = {3, 3, joints, joints, joints, joints, legs, legs};
    double *to = python->row;
    *to++ = python->as_double(python->tuple_item(sample, 0));
    if (python->row[0] == -1.0 && python->error()) {
        python->clear_error();
        return 0;
    }
    for (int k = 0; k < FIELDS; to += counts[k++]) {
        void *field = python->tuple_item(sample, k + 1);
        if (field != python->none) {
            if (!copy_field(python, field, k >= 2 && k < 6, counts[k], to)) return 0;
        } else if (k < REQUIRED) {
            return 0;
        } else {
            for (int i = 0; i < counts[k]; i++) to[i] = NAN;
        }
    }
    gait_step_row(python->estimator, python->row, python->state_and_cov);
    return 1;
}
