/* GAIT core: body velocity, orientation and position of a legged robot from its IMU and joint encoders.
 *
 *     gait_t *g = gait_init(memory, &config);            once, in gait_bytes(&config) bytes of yours
 *     gait_reset_gravity(g, accel);                      at rest; or gait_reset with a known pose
 *     for each sample:
 *         health = gait_update(g, &sample, &state);
 *
 * C99. Nothing is allocated and there are no globals: a context is one block of memory without pointers into itself, so
 * memcpy clones it, and any number of them run in any number of threads, each in one thread at a time. They share the
 * configuration, which is never written.
 *
 * SI units and radians; x forward, y left, z up; quaternions are w x y z. Frames: `_w` world, `_b` base_link, `_i` IMU;
 * R_bi maps from the IMU to the base. Gyro and accelerometer (specific force: +9.81 on z at rest) are in IMU axes.
 */
#ifndef GAIT_H
#define GAIT_H

#include <stddef.h>
#include <stdint.h>

#include "network.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Most legs and joints that a context has room for; an exported file has just those of its robot. */
#ifndef GAIT_MAX_LEGS
#define GAIT_MAX_LEGS 8
#endif
#ifndef GAIT_MAX_JOINTS
#define GAIT_MAX_JOINTS (8 * GAIT_MAX_LEGS)
#endif
/* Most links of all legs: more than joints where joints follow others. */
#ifndef GAIT_MAX_LINKS
#define GAIT_MAX_LINKS GAIT_MAX_JOINTS
#endif
/* Most links of one leg, and corners of one foot. */
enum { GAIT_LEG_LINKS = 12, GAIT_CORNERS = 4 };
/* Most feet in the state; 0 will do where no method takes contacts, and leaves the covariance small. */
#ifndef GAIT_MAX_FEET
#define GAIT_MAX_FEET GAIT_MAX_LEGS
#endif
#define GAIT_MAX_STATES (15 + 3 * GAIT_MAX_FEET)
/* Rows of a covariance are padded to whole vector registers. */
#define GAIT_STRIDE(size) (((size) + 7) & ~7)
#define GAIT_MAX_STRIDE GAIT_STRIDE(GAIT_MAX_STATES)
/* At most the bytes of a context without the memory of its networks, for memory that is reserved at compile time. */
#define GAIT_CONTEXT_BYTES \
    (8 * (GAIT_MAX_STATES * GAIT_MAX_STRIDE + 32 * GAIT_MAX_JOINTS + 54 * GAIT_MAX_LEGS + 475))

/* Bits of health; 0 means that all is well. */
enum {
    GAIT_STARTING = 1,        /* no gravity direction or no measurement so far */
    GAIT_TIME_GAP = 2,        /* samples were missing before this one */
    GAIT_BAD_SAMPLE = 4,      /* a value was not finite, out of range or out of time, and was not used */
    GAIT_NO_MEASUREMENT = 8,  /* propagation by the IMU alone */
    GAIT_REJECTED = 16,       /* a measurement was not used */
    GAIT_SLIP = 32,           /* a foot in contact moves */
    GAIT_DIVERGED = 64,       /* state or covariance left the plausible range */
    GAIT_BAD_TIME = 128,      /* stamp not finite or not later than the last */
    GAIT_BAD_IMU = 256,       /* gyro or accelerometer not finite */
    GAIT_IMU_SATURATED = 512, /* gyro or accelerometer at the end of its range, or cut off */
    GAIT_STALE_LEG = 1024,    /* with it, bit GAIT_FIRST_LEG + i: leg i is not used */
    GAIT_RESET = 2048,        /* the velocity was reset to the measurement */
    GAIT_GYRO = 4096,         /* with bits of the IMU: the gyro is meant, and was not used */
    GAIT_ACCEL = 8192,        /* the accelerometer is meant */
    GAIT_IMU_STUCK = 16384,   /* values that do not change */
    GAIT_IMU_UNITS = 32768,   /* values of another unit: accelerometer in g, gyro in degrees */
    GAIT_FIRST_LEG = 16,      /* eight bits */
    GAIT_DQ_DEAD = 1 << 24,   /* joint velocities are zero while angles move: differences of angles stand in */
    GAIT_ENCODER_STUCK = 1 << 25, /* with GAIT_STALE_LEG: an angle does not change while the leg moves */
    GAIT_BAD_TORQUE = 1 << 26, /* torques do not support the weight, and were not used */
    GAIT_CLOCK_BACK = 1 << 27, /* the clock was set back */
    GAIT_IMU_DISPUTED = 1 << 28, /* measurements agree with each other and not with the IMU */
    GAIT_IMU_SPIKE = 1 << 29, /* a single value far from its neighbours, which was not used */
    GAIT_IMU_AXES = 1 << 30   /* the specific force contradicts the orientation */
};
#define GAIT_NO_TORQUE 0x80000000u /* torques and joint targets that were there are missing */

/* Bits of gait_state.valid: what a controller may use. */
enum { GAIT_VALID_VELOCITY = 1, GAIT_VALID_ATTITUDE = 2, GAIT_VALID_POSITION = 4 };

/* What measures: a network's velocity, one velocity a leg, feet on the ground, or the caller (gait_begin). */
enum { GAIT_VELOCITY = 0, GAIT_LEGS = 1, GAIT_CONTACTS = 2, GAIT_EXTERNAL = 3 };

/* Where contacts come from. */
enum { GAIT_FROM_TORQUE = 0, GAIT_FROM_FORCE = 1, GAIT_FROM_FLAGS = 2 };

/* How a link moves: about any axis, along one, or about an axis of base_link at zero. */
enum { GAIT_ABOUT_ANY = 0, GAIT_ALONG = 1, GAIT_ABOUT_X = 2, GAIT_ABOUT_Y = 3, GAIT_ABOUT_Z = 4 };

/* A robot whose legs are serial chains of links. Link frames are parallel to base_link where all joints are at zero. */
typedef struct gait_robot {
    int32_t legs, joints;
    int32_t leg_start[GAIT_MAX_LEGS + 1];  /* joints of leg i: leg_start[i] to leg_start[i + 1] */
    int32_t link_start[GAIT_MAX_LEGS + 1]; /* links likewise */
    int32_t link_kind[GAIT_MAX_LINKS];
    int32_t link_joint[GAIT_MAX_LINKS];    /* joint of the leg that moves the link, by ratio * q + shift */
    int32_t shared[GAIT_MAX_LEGS];         /* first joints that other legs have too: their torques measure no force */
    int32_t corner_count[GAIT_MAX_LEGS];   /* of a sole; 0: the foot is a point or a sphere */
    double R_bi[9], p_bi[3];              /* mounting rotation and lever arm of the IMU */
    double weight;                        /* N */
    double leg_length;                    /* m */
    double hips_b[GAIT_MAX_LEGS][3];      /* where legs begin */
    double axes[GAIT_MAX_LINKS][3], ratio[GAIT_MAX_LINKS], shift[GAIT_MAX_LINKS];
    double offsets[GAIT_MAX_LINKS][3];    /* from the joint before, or the base, to that of each link */
    double feet[GAIT_MAX_LEGS][3];        /* from the last joint to the centre of the foot */
    double foot_radius[GAIT_MAX_LEGS], corners[GAIT_MAX_LEGS][GAIT_CORNERS][3]; /* corners around the centre */
    double inertial[GAIT_MAX_LINKS][10];  /* mass, centre of mass, inertia xx yy zz xy xz yz of each link */
    double armature[GAIT_MAX_JOINTS];     /* rotor inertia, kg m^2 */
    double kp[GAIT_MAX_JOINTS], kd[GAIT_MAX_JOINTS], torque_limit[GAIT_MAX_JOINTS];
    double q_lower[GAIT_MAX_JOINTS], q_upper[GAIT_MAX_JOINTS], dq_limit[GAIT_MAX_JOINTS]; /* margins included */
} gait_robot;

/* Noise densities: a step of dt adds the variance density^2 dt. */
typedef struct gait_noise {
    double gyro, accel, gyro_bias, accel_bias;
    double accel_share; /* joins accel for each m/s^2 of the body's acceleration */
    double position, position_share; /* of the position, always and for each m/s: errors of the velocity that last */
    double height_time; /* s for which an error of the vertical velocity lasts: its variance times this joins the height's */
} gait_noise;

typedef struct gait_settings {
    gait_noise noise;
    double gravity;             /* z component in the world, m/s^2 */
    double prior_std[15];       /* of a state that is given: rotation, velocity, position, gyro bias, accel bias */
    double rest_std[15];        /* of a state found from gravity */
    double max_gap;             /* a longer step, s, is a gap */
    double gap_accel, gap_rate; /* how the body may have moved in a gap: m/s^2, rad/s */
    double max_gyro, max_accel; /* ranges of the sensors */
    double joint_margin;        /* rad beyond the stops of a joint that q_lower and q_upper include */
    double hold;                /* s for which the last good IMU, target or torque stands in for a bad one */
    double stale;               /* s without change after which encoders count as stuck */
    double clock_reset;         /* s into the past that are a clock set back, not a delayed sample */
    double inflation;           /* factor on a network's standard deviations */
    double leg_inflation;       /* the same for those of legs */
    double leg_gate;            /* standard deviations of the innovation beyond which a leg's variance is inflated */
    double leg_instant;         /* std of a leg in one sample over that which a filter may take for white noise */
    double joint_delay, joint_delay_std; /* latency of joints against the IMU, s */
    int32_t exact_mean, exact_phi;       /* integrate the rotation within a step; keep every term of Phi */
    int32_t flexure;                     /* compensate the compliance of joints */
} gait_settings;

/* Contact detection and slip rejection of the contact-aided filter. */
typedef struct gait_contact_settings {
    double touch_down, lift_off;             /* share of the weight */
    double smoothing;                        /* low-pass of joint torques and accelerations, s */
    double touch_down_dwell, lift_off_dwell; /* s */
    double contact_std;                      /* random walk of a foot on the ground, m/sqrt(s) */
    double kinematics_std;                   /* of forward kinematics, m */
    double rolling;                          /* 0: feet do not roll */
    double slip_speed, slip_inflation;       /* least limit, m/s (infinite: none); most factor on contact_std */
} gait_contact_settings;

typedef struct gait_config {
    int32_t method;
    int32_t reads_targets; /* whether the network reads q_des - q, or that of legs forces */
    int32_t hides_legs;    /* whether the network has a token for each leg */
    int32_t with_details;  /* whether states carry attention and legs */
    int32_t with_feet;     /* whether states carry contact, speed, force and position of each foot, and the ground */
    double period;         /* of the network, s */
    gait_robot robot;
    gait_settings settings;
    gait_contact_settings contacts;
    const gait_network *network;       /* null: none */
    const gait_network *spare_network; /* takes over while a leg is out of use; null: none */
    const gait_leg_network *leg_network;
    const gait_leg_network *spare_leg_network; /* takes over while there are no torques; null: none */
} gait_config;

/* One sample. A null pointer or a nan stands for what is not there. */
typedef struct gait_sample {
    double t;
    const double *gyro, *accel;              /* (3) */
    const double *q, *dq, *q_des, *tau;      /* (joints) */
    const double *foot_force, *contact;      /* (legs) */
    const double *leg_ok;                    /* (legs): 0 where encoders are known to be broken */
} gait_sample;

/* The state of base_link after a sample. Behind it, in the same array of doubles, are the details: the test ratio of each
 * leg, where the method has legs; the contact of each leg, or, if asked for, the attention and velocity and log-std of
 * each leg; and, if asked for, of each foot probability of contact, speed over the ground, normal force and position (3) in
 * the world, then of the ground height under base_link, its change along x and y, and slope. nan: not known. */
typedef struct gait_state {
    double quat_wb_wxyz[4];
    double vel_w[3], pos_w[3], vel_b[3];
    double gyro_bias[3], accel_bias[3]; /* IMU axes */
    double vel_cov[3][3];               /* of vel_b */
    double pose_cov[6][6];              /* position, rotation; world axes */
    double t;                           /* of the last sample that was used, s */
    double health;                      /* bits */
    double gap;                         /* s */
    double predicted[6];                /* velocity and log-std of the network; nan without one */
    double test_ratio;                  /* of the measurement: innovation over its gate, above 1 an outlier */
    double resets;                      /* of the velocity or the whole state, since the start */
    double valid;                       /* bits */
} gait_state;
#define GAIT_STATE_DOUBLES (sizeof(gait_state) / sizeof(double))

typedef struct gait_t gait_t;

size_t gait_bytes(const gait_config *config);         /* of a context */
size_t gait_state_doubles(const gait_config *config); /* of a state with its details */
gait_t *gait_init(void *memory, const gait_config *config); /* memory: aligned to 64 bytes is best, to 8 a must */
void gait_set_config(gait_t *g, const gait_config *config); /* after the configuration has moved */
void gait_set_contact_source(gait_t *g, int source);

/* Start again at a known state of base_link; omega_i is the angular rate as the gyro measures it; std (15) replaces the
 * prior, or is null. */
void gait_reset(gait_t *g, const double quat_wb_wxyz[4], const double vel_w[3], const double pos_w[3],
                const double omega_i[3], const double *std);
/* Start again at rest, roll and pitch from the specific force (3), or from the next sample's if null. Returns 0, with
 * nothing changed, if it is not that of a robot at rest. */
int gait_reset_gravity(gait_t *g, const double *accel);

/* Take one sample; returns bits of health. state may be null; behind it there must be room for the details. */
uint32_t gait_update(gait_t *g, const gait_sample *sample, gait_state *state);
/* The same for n samples in rows of numbers: t, gyro, accel, q, dq, q_des, tau, foot_force, contact, leg_ok. */
void gait_run(gait_t *g, const double *rows, size_t n, double *states);
/* One such row; behind the state comes the covariance (gait_cov). */
void gait_step_row(gait_t *g, const double *row, double *state_and_cov);
size_t gait_row_doubles(const gait_config *config);
/* n contexts, `bytes` apart, each with its own row; states `width` doubles apart; skip is null or flags. */
void gait_update_batch(gait_t *first, size_t bytes, size_t n, const double *rows, const unsigned char *skip,
                       double *states);

/* IMU and joints that come apart. Joints are kept until the next IMU sample, which makes the step; those older than
 * `hold` count as missing. */
void gait_update_joints(gait_t *g, const gait_sample *sample);
uint32_t gait_update_imu(gait_t *g, double t, const double gyro[3], const double accel[3], gait_state *state);
void gait_step_imu(gait_t *g, double t, const double gyro[3], const double accel[3], double *state_and_cov);

/* The state carried on to a later time by the last IMU sample; the context does not change. `scratch` is a context of
 * the same configuration. Behind the state comes the covariance. */
void gait_predict(const gait_t *g, double t, gait_t *scratch, double *state_and_cov);

/* The parts of a step, for measurements of the caller's own (method GAIT_EXTERNAL): take a sample, the first one too, and
 * propagate the filter to it; returns health bits, and whether measurements may be given. gait_admitted writes the sample
 * as it was admitted, bad values replaced by the last good ones: t, gyro, accel, q, dq, q_des (nan where there never was a
 * target). Then any number of corrections with an innovation z (m) = -H xi + noise of covariance N (m, m), H (m, 15), m at
 * most 24: xi is the right-invariant error, rotation, velocity, position, gyro bias and accelerometer bias of the IMU.
 * Then the state. */
uint32_t gait_begin(gait_t *g, const gait_sample *sample, int *ready);
void gait_admitted(const gait_t *g, double *sample);
int gait_correct(gait_t *g, int m, const double *z, const double *H, const double *N);
uint32_t gait_end(gait_t *g, uint32_t health, gait_state *state);

/* Measurements of other sensors, of these kinds; value and covariance by kind:
 * GAIT_POSE: position (3) and quaternion (4) of the sensor in the world; covariance of position, rotation (6, 6), world axes
 * GAIT_POSITION, GAIT_HEIGHT: of the sensor in the world; (3, 3), (1)
 * GAIT_VELOCITY_W, GAIT_VELOCITY_B: of the sensor, in the world or in its own axes; (3, 3) in the same axes
 * GAIT_HEADING: of the sensor's x axis about the vertical; (1)
 * GAIT_UP: the upward vertical in axes of the sensor, length 1; (3, 3)
 * GAIT_ORIENTATION: quaternion (4); (3, 3) of the rotation, world axes */
enum { GAIT_POSE, GAIT_POSITION, GAIT_VELOCITY_W, GAIT_VELOCITY_B, GAIT_HEADING, GAIT_HEIGHT, GAIT_UP, GAIT_ORIENTATION };
typedef struct gait_external {
    int32_t kind;
    double t;                         /* s, on the clock of the samples */
    double value[7], cov[36];
    double p_bs[3], quat_bs_wxyz[4];  /* the sensor in base_link */
    double gate;                      /* standard deviations of the innovation beyond which it is an outlier */
} gait_external;
/* Verdicts. */
enum { GAIT_TAKEN, GAIT_OUTLIER, GAIT_TOO_OLD, GAIT_AHEAD, GAIT_NOT_STARTED, GAIT_NOT_USABLE };

/* Correct the present state by a measurement of nearly the same time. test_ratio: sqrt(NIS / rows) over the gate. */
int gait_correct_external(gait_t *g, const gait_external *e, double *test_ratio);
/* Its rows, which are returned: z (m) = -H xi + noise of covariance N (m, m), H (m, 15). */
int gait_external_rows(const gait_t *g, const gait_external *e, double z[6], double H[90], double N[36]);
/* Put base_link elsewhere; velocity in the body and biases stay. std: of rotation (3) and position (3). */
void gait_reset_pose(gait_t *g, const double quat_wb_wxyz[4], const double pos_w[3], const double std[6]);

/* The same for measurements up to 0.5 s old: steps go through a history, which keeps samples and copies of the context in
 * gait_history_bytes of yours, and a measurement is inserted at its time. kind: 0 for a whole row, 1 for its joints
 * (gait_update_joints), 2 for its IMU (gait_update_imu). */
typedef struct gait_history gait_history;
size_t gait_history_bytes(const gait_config *config);
gait_history *gait_history_init(void *memory);
void gait_history_clear(gait_history *h); /* after a reset */
void gait_history_step(gait_history *h, gait_t *g, int kind, const double *row, double *state_and_cov);
int gait_history_correct(gait_history *h, gait_t *g, const gait_external *e, double *test_ratio);
/* The pose of base_link after the sample nearest to a time; 0 if there is none. */
int gait_history_pose(const gait_history *h, double t, double quat_wb_wxyz[4], double pos_w[3]);

/* Smoothing. A recorder keeps the last `records` steps of the filter in gait_recorder_bytes of yours, once gait_record gave it
 * to a context (null: no more). gait_run_recorded is gait_run with the recorder, and writes how many steps each sample ends
 * with; `shifts` (n, legs, 3), or null, join the velocities that the legs of gait-legs measure, base axes, m/s.
 * gait_smooth_run then replaces the states by smoothed ones, from the last to the first. A long log goes in parts, the
 * last one first: `carry` (gait_carry_bytes) takes the smoothed state from one part to the one before, with resume = 1.
 * gait_lagged: the smoothed state and covariance of `lag` seconds ago, or the earliest recorded one; 0 if that is later. */
typedef struct gait_recorder gait_recorder;
size_t gait_recorder_bytes(const gait_config *config, size_t records);
gait_recorder *gait_recorder_init(void *memory, const gait_config *config, size_t records);
void gait_record(gait_t *g, gait_recorder *recorder);
size_t gait_carry_bytes(void);
void gait_run_recorded(gait_t *g, gait_recorder *r, const double *rows, const double *shifts, size_t n, double *states,
                       uint64_t *nodes);
void gait_smooth_run(gait_recorder *r, const gait_t *g, void *carry, int resume, const uint64_t *nodes, size_t n,
                     double *states);
void gait_smooth_back(gait_recorder *r, const gait_t *g, void *carry, int resume, uint64_t until);
int gait_lagged(gait_recorder *r, const gait_t *g, double lag, void *carry, double *state_and_cov);

/* Covariance of the right-invariant error, (size, size): rotation, velocity, position, biases, then feet. */
int gait_cov_size(const gait_config *config);
void gait_cov(const gait_t *g, double *cov);

/* Foot (3), its velocity (joints, 3) and its angular velocity (joints, 3) by the joints of a leg; and the joint torques
 * of a leg that touches nothing, on a base that does not turn; gravity_b is gravity less the acceleration of the base. */
void gait_leg_forward(const gait_robot *robot, int leg, const double *q, double *foot_b, double *jacobian,
                      double *angular);
void gait_leg_torque(const gait_robot *robot, int leg, const double *q, const double *dq, const double *ddq,
                     const double *gravity_b, double *torque);
/* Force of the ground on the foot (3) in base axes, from torques and those of the free leg; 0 where they do not determine it. */
int gait_leg_force(const gait_robot *robot, int leg, const double *q, const double *tau, const double *tau_free,
                   double *force_b);

/* Features of gait-legs for n samples in a row, for training: arrays (n, 3) or (n, joints), dt (n), out (n, 6 + 12 legs).
 * `compliance` of the joints in rad/(N m) is compensated; below 0, torques are not known. */
void gait_leg_features(const gait_robot *robot, double delay, double compliance, size_t n, const double *gyro,
                       const double *accel, const double *q, const double *dq, const double *tau, const double *dt,
                       double *out);

/* What contacts found live share with those of a recording (8): the knee of the force, in weights, the limits of a foot's
 * height, m, log-odds of contact by force and speed alone (4), and from where on they show the ground. */
void gait_foot_constants(double out[8]);

#ifdef __cplusplus
}
#endif
#endif
