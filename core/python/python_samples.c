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

typedef struct {
    ptrdiff_t references;
    PyObject *type;
} object_head;

/* PyArrayObject, as numpy has kept it since 1.7 and the binding finds it. */
typedef struct {
    object_head head;
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
extern PyObject *PyTuple_GetItem(PyObject *tuple, ptrdiff_t place);
extern ptrdiff_t PyTuple_Size(PyObject *tuple);
extern PyObject *PyType_GenericAlloc(PyObject *type, ptrdiff_t items);
extern void Py_IncRef(PyObject *object);
extern void Py_DecRef(PyObject *object);

/* `gait.state.State`, whose two slots the binding finds there. */
typedef struct {
    object_head head;
    PyObject *data, *layout;
} state_object;

/* What a step needs to know. */
typedef struct {
    gait_t *estimator;
    gait_history *history; /* null: none is kept */
    const gait_config *config;
    double *row;           /* room for a sample; which legs are fine is there already */
    size_t bytes;          /* of state and covariance */
    int32_t width;         /* joints of a sample */
    const int32_t *order;  /* where the robot's stand among them; null: in the robot's order, and no others */
    const int32_t *busy;   /* not zero while another thread has the estimator */
    PyObject *none, *array, *float64, *float32, *boolean; /* None, the type of arrays, and those of their numbers */
    PyObject *sample, *state, *layout;                    /* types of samples and states; how to read a state */
} gait_python;

enum { FIELDS = 8, REQUIRED = 4 };

/* Numbers of an array: all of them, or by joint those of the robot, in its order. */
static int copy_field(const gait_python *python, const numpy_array *from, int by_joint, int count, double *to)
{
    const int32_t *wanted = by_joint ? python->order : NULL;
    const ptrdiff_t expected = by_joint ? python->width : count;
    if (from->head.type != python->array || from->nd != 1 || from->dimensions[0] != expected) return 0;
    if (from->descr == python->float64 && !wanted && from->strides[0] == sizeof(double)) {
        memcpy(to, from->data, (size_t)count * sizeof(double));
        return 1;
    }
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

/* A State around the numbers, which it takes over. */
static PyObject *state_of(const gait_python *python, PyObject *data)
{
    state_object *state = PyType_GenericAlloc(python->state, 0);
    if (!state) {
        Py_DecRef(data);
        return NULL;
    }
    Py_IncRef(python->layout);
    state->data = data;
    state->layout = python->layout;
    return state;
}

/* Takes stamp, gyro, accel, q, dq, q_des, tau, foot_force and contact, of which the last four may be None, or a Sample of
 * them in place of the stamp; `self` is the address of a gait_python as a number. Returns the State; or None, with no step
 * done, if something is not an array of the right size, or another thread is at it. The GIL is held throughout. */
PyObject *gait_step_python(PyObject *self, PyObject *const *arguments, ptrdiff_t count)
{
    const gait_python *python = PyLong_AsVoidPtr(self);
    PyObject *items[FIELDS + 1];
    if (count == FIELDS + 1 && ((const object_head *)arguments[0])->type == python->sample
        && PyTuple_Size(arguments[0]) == FIELDS + 1) {
        for (int i = 0; i <= FIELDS; i++) items[i] = PyTuple_GetItem(arguments[0], i);
        arguments = items;
    }
    if (!*python->busy && count == FIELDS + 1 && fill_row(python, arguments)) {
        PyObject *out = PyByteArray_FromStringAndSize(NULL, (ptrdiff_t)python->bytes);
        if (!out) return NULL;
        double *to = (double *)(void *)PyByteArray_AsString(out);
        if (python->history) gait_history_step(python->history, python->estimator, 0, python->row, to);
        else gait_step_row(python->estimator, python->row, to);
        return state_of(python, out);
    }
    Py_IncRef(python->none);
    return python->none;
}
