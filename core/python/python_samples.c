/* Samples straight out of numpy arrays: a step of the estimator as a built-in function of Python.
 *
 * It calls functions of Python's stable ABI alone, declared here, so that it builds where Python's headers are missing, and
 * one library serves every Python 3. What it cannot read, such as lists or integers, it leaves to the binding
 * (`gait.binding.builtin_step`), which converts or refuses it. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "../gait.h"

typedef void PyObject;
typedef struct {
    void *buf;
    PyObject *obj;
    ptrdiff_t len, itemsize;
    int readonly, ndim;
    char *format;
    ptrdiff_t *shape, *strides, *suboffsets;
    void *internal;
} Py_buffer;

extern int PyObject_GetBuffer(PyObject *object, Py_buffer *view, int flags);
extern void PyBuffer_Release(Py_buffer *view);
extern double PyFloat_AsDouble(PyObject *number);
extern void *PyLong_AsVoidPtr(PyObject *number);
extern PyObject *PyErr_Occurred(void);
extern void PyErr_Clear(void);
extern PyObject *PyByteArray_FromStringAndSize(const char *from, ptrdiff_t size);
extern void Py_IncRef(PyObject *object);

/* What a step needs to know. */
typedef struct {
    gait_t *estimator;
    const gait_config *config;
    double *row;           /* room for a sample; which legs are fine is there already */
    double *state_and_cov; /* room for what comes out */
    size_t bytes;          /* of it */
    int32_t width;         /* joints of a sample */
    const int32_t *order;  /* where the robot's stand among them */
    PyObject *none;        /* Py_None */
} gait_python;

/* PyBUF_FORMAT | PyBUF_ND: contiguous, with a shape and a type. */
enum { CONTIGUOUS = 0x0004 | 0x0008, FIELDS = 8, REQUIRED = 4 };

/* Numbers of an array of the given size, all of them or those that are wanted. */
static int copy_numbers(const Py_buffer *view, int size, const int32_t *wanted, int count, double *to)
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

static int copy_field(const gait_python *python, PyObject *object, int by_joint, int count, double *to)
{
    Py_buffer view;
    if (PyObject_GetBuffer(object, &view, CONTIGUOUS)) {
        PyErr_Clear();
        return 0;
    }
    const int copied = copy_numbers(&view, by_joint ? python->width : count, by_joint ? python->order : NULL, count, to);
    PyBuffer_Release(&view);
    return copied;
}

static int fill_row(const gait_python *python, PyObject *const *sample)
{
    const int joints = python->config->robot.joints, legs = python->config->robot.legs;
    const int counts[FIELDS] = {3, 3, joints, joints, joints, joints, legs, legs};
    double *to = python->row;
    *to++ = PyFloat_AsDouble(sample[0]);
    if (python->row[0] == -1.0 && PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    for (int k = 0; k < FIELDS; to += counts[k++]) {
        PyObject *field = sample[k + 1];
        if (field != python->none) {
            if (!copy_field(python, field, k >= 2 && k < 6, counts[k], to)) return 0;
        } else if (k < REQUIRED) {
            return 0;
        } else {
            for (int i = 0; i < counts[k]; i++) to[i] = NAN;
        }
    }
    return 1;
}

/* Takes stamp, gyro, accel, q, dq, q_des, tau, foot_force and contact, of which the last four may be None; `self` is the
 * address of a gait_python as a number. Returns state and covariance as a bytearray; or None, with no step done, if
 * something is not an array of the right size. */
PyObject *gait_step_python(PyObject *self, PyObject *const *arguments, ptrdiff_t count)
{
    const gait_python *python = PyLong_AsVoidPtr(self);
    if (count == FIELDS + 1 && fill_row(python, arguments)) {
        gait_step_row(python->estimator, python->row, python->state_and_cov);
        return PyByteArray_FromStringAndSize((const char *)python->state_and_cov, (ptrdiff_t)python->bytes);
    }
    Py_IncRef(python->none);
    return python->none;
}
