/* Samples straight out of numpy arrays: a step of the estimator as a built-in function of Python.
 *
 * It calls functions of Python's stable ABI alone, declared here, so that it builds where headers are missing, and one
 * library serves every Python 3. What it cannot read, such as lists or integers, it leaves to the binding
 * (`gait.binding.builtin_step`), which converts or refuses it. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "../gait.h"

typedef void PyObject;

/* PyArrayObject, as numpy has kept it since 1.7 and the binding finds it. */
typedef struct {
    ptrdiff_t references;
    PyObject *type;
    char *data;
    int nd;
    ptrdiff_t *dimensions, *strides;
    PyObject *base, *descr;
} numpy_array;

extern double PyFloat_AsDouble(PyObject *number);
extern void *PyLong_AsVoidPtr(PyObject *number);
extern PyObject *PyErr_Occurred(void);
extern void PyErr_Clear(void);
extern PyObject *PyByteArray_FromStringAndSize(const char *from, ptrdiff_t size);
extern char *PyByteArray_AsString(PyObject *bytearray);
extern void Py_IncRef(PyObject *object);

/* What a step needs to know. */
typedef struct {
    gait_t *estimator;
    const gait_config *config;
    double *row;           /* room for a sample; which legs are fine is there already */
    size_t bytes;          /* of state and covariance */
    int32_t width;         /* joints of a sample */
    const int32_t *order;  /* where the robot's stand among them */
    const int32_t *busy;   /* not zero while another thread has the estimator */
    PyObject *none, *array, *float64, *float32, *boolean; /* None, the type of arrays, and those of their numbers */
} gait_python;

enum { FIELDS = 8, REQUIRED = 4 };

/* Numbers of an array: all of them, or by joint those of the robot, in its order. */
static int copy_field(const gait_python *python, const numpy_array *from, int by_joint, int count, double *to)
{
    const int32_t *wanted = by_joint ? python->order : NULL;
    if (from->type != python->array || from->nd != 1 || from->dimensions[0] != (by_joint ? python->width : count)) return 0;
#define COPY(type)                                                                                      \
    for (int i = 0; i < count; i++) {                                                                   \
        type value;                                                                                     \
        memcpy(&value, from->data + (wanted ? wanted[i] : i) * from->strides[0], sizeof value);         \
        to[i] = value;                                                                                  \
    }
    if (from->descr == python->float64) {
        COPY(double)
    } else if (from->descr == python->float32) {
        COPY(float)
    } else if (from->descr == python->boolean) {
        COPY(unsigned char)
    } else {
        return 0;
    }
#undef COPY
    return 1;
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
 * something is not an array of the right size, or another thread is at it. The GIL is held throughout. */
PyObject *gait_step_python(PyObject *self, PyObject *const *arguments, ptrdiff_t count)
{
    const gait_python *python = PyLong_AsVoidPtr(self);
    if (!*python->busy && count == FIELDS + 1 && fill_row(python, arguments)) {
        PyObject *out = PyByteArray_FromStringAndSize(NULL, (ptrdiff_t)python->bytes);
        if (out) gait_step_row(python->estimator, python->row, (double *)(void *)PyByteArray_AsString(out));
        return out;
    }
    Py_IncRef(python->none);
    return python->none;
}
