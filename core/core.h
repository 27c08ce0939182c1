/* Declarations that the files of the core share, private to it. */
#ifndef GAIT_CORE_H
#define GAIT_CORE_H

#include "iekf.h"

#ifdef __FAST_MATH__
#error "-ffast-math takes away the checks for nan: leave it out"
#endif

/* Features of a leg: position of the foot (leg lengths), velocity that the leg measures, ground force (weights) and
 * acceleration of the foot by the joints; before them angular rate and specific force in base axes. */
enum { FOOT_POSITION = 0, LEG_VELOCITY = 3, GROUND_FORCE = 6, FOOT_ACCEL = 9, LEG_FEATURES = 12, SHARED_FEATURES = 6 };
#define GAIT_MOUNTING_STD 0.008 /* how well the IMU's mounting in base_link is known, rad */
enum { RATES = 8 }; /* angular rates kept for the latency of joints */

/* A measurement of base_link's velocity in base axes, and of the gyro bias about z beyond the estimate. */
typedef struct gait_measurement {
    double velocity[3], variance[3];
    double bias, bias_variance; /* variance 0: none */
} gait_measurement;

/* What is known of a gyro or an accelerometer beside its last good value. */
typedef struct gait_sensor {
    double raw[3], before[3]; /* last value, good or not, and the one before */
    double top[3], limit[3], window; /* largest magnitude of each axis lately, and where it is cut off; s of lately */
    double level;             /* low-passed magnitude */
    double jumps, noise;      /* mean square of the change from sample to sample; white noise of a sample */
    double same, odd, cut;    /* s without change, of implausible magnitude, at the largest magnitude */
    double blind, charge;     /* s without a good value; s before that for which bad ones were used */
    double spike;             /* size of the spike in this sample */
    double swing;             /* mean square of what the body's motion adds to the magnitude, lately */
    double stood[3], jump2;   /* the value before the last, and the square of the change between the two */
    uint8_t hits[3], spikes, samples, rises, known; /* rises: samples in a row above the noise */
} gait_sensor;
enum { GYRO, ACCEL };
#define GAIT_IMU_CUT 0x80000000u /* within the checks of the IMU: at the largest magnitude, but usable */

/* What is known of each joint: its velocity by differences of angles, and how that compares with the reported one. */
typedef struct gait_joint_state {
    double slow_q[GAIT_MAX_JOINTS], slow_dq[GAIT_MAX_JOINTS]; /* low-passed */
    double moves[GAIT_MAX_JOINTS], turns[GAIT_MAX_JOINTS], apart[GAIT_MAX_JOINTS]; /* mean squares: of q', dq, q' - dq */
    double same[GAIT_MAX_JOINTS], doubt[GAIT_MAX_JOINTS]; /* s without change of the angle; s for which the two differ */
    double speed2[GAIT_MAX_LEGS];    /* mean square of a leg's fastest joint */
    uint8_t known[GAIT_MAX_LEGS];
} gait_joint_state;

/* Whether torques carry the robot: means over some steps. */
typedef struct gait_torque_state {
    double carried[3], expected[3]; /* mean force by the torques, in weights, and by the accelerometer, in g */
    double seen;              /* share of the means that is not what they began with */
    double apart, size;       /* mean squares: torque less that of the joint targets, the larger of the two */
    double wrong;             /* s for which torques have not supported the weight */
    double missing;           /* s without any torque */
    double unloaded;          /* s for which legs that carried the robot have not */
    double contradicts[GAIT_MAX_JOINTS]; /* s for which a joint has been far from its target without the torque for it */
    uint8_t ignored, measured, compared, had, supported, lifted; /* had: torques; lifted: something else carries it */
} gait_torque_state;

/* The last good sample, and for how long each part of it has been bad. */
typedef struct gait_input {
    double gyro[3], accel[3];
    double q[GAIT_MAX_JOINTS], dq[GAIT_MAX_JOINTS], e[GAIT_MAX_JOINTS]; /* e = q_des - q */
    double raw_q[GAIT_MAX_JOINTS], raw_dq[GAIT_MAX_JOINTS];
    double unchanged[GAIT_MAX_LEGS], no_target[GAIT_MAX_LEGS]; /* s; infinite: never a target */
    double t, dt, gap;      /* stamp, step, length of the gap */
    double period;          /* usual step, s */
    double unseen;          /* part of this step that is longer than usual, s: samples were lost */
    double late_from, late_t; /* first and last stamp of the samples that are being refused */
    gait_sensor imu[2];
    gait_joint_state joints;
    gait_torque_state torque;
    int32_t refused;        /* samples in a row */
    uint8_t ok[GAIT_MAX_LEGS], leg_known[GAIT_MAX_LEGS], stale[GAIT_MAX_LEGS]; /* stale: found to be, until it changes */
    uint8_t started, imu_known;
} gait_input;
enum { REFUSED, FIRST, GO_ON, AFTER_GAP }; /* verdicts of gait_admit */

/* s for which the IMU has not been good as a whole. */
static inline double imu_blind(const gait_input *in)
{
    return larger(in->imu[GYRO].blind, in->imu[ACCEL].blind);
}

/* A leg after the outward pass, in base axes: rotation of each link, its joint's place and axis, the centre of the foot,
 * and columns of foot velocity and foot rate by each encoder. */
typedef struct {
    double R[GAIT_LEG_LINKS][9], p[GAIT_LEG_LINKS][3], z[GAIT_LEG_LINKS][3], foot[3];
    double J[3 * GAIT_LEG_LINKS], W[3 * GAIT_LEG_LINKS];
    int links, joints;
} leg_pose;

/* The predicted state in base axes. */
typedef struct {
    double velocity[3], variance[3], acceleration[3], rate[3]; /* rate: of the body, the gyro bias taken off */
    int upright;        /* upside down, or carried, a robot does not stand on its feet */
} prediction;

/* State of contact detection. */
typedef struct gait_contact_state {
    double waiting[GAIT_MAX_LEGS];          /* s on the other side of the threshold */
    double dq[GAIT_MAX_JOINTS], ddq[GAIT_MAX_JOINTS], tau[GAIT_MAX_JOINTS]; /* last, smoothed, smoothed */
    double walk[GAIT_MAX_LEGS];             /* random walk density of each foot */
    double roll_i[GAIT_MAX_LEGS][3], foot_i[GAIT_MAX_LEGS][3]; /* centres of the feet: velocity, position */
    double slip_b[GAIT_MAX_LEGS][3], force_b[3]; /* predicted velocity of each foot over the ground; sum of forces */
    double slip_limit;                      /* m/s above which a foot slips */
    double bias_i[GAIT_MAX_LEGS][3];        /* gyro bias as a sole that rests measures it */
    uint8_t rests[GAIT_MAX_LEGS];           /* all corners of the sole are loaded */
    uint8_t contact[GAIT_MAX_LEGS], fresh[GAIT_MAX_LEGS];      /* fresh: no joint velocity before this one */
    uint8_t measured;
} gait_contact_state;

/* Compliance of the joints under load. */
typedef struct gait_flexure {
    double compliance, assumed;             /* rad/(N m): as fitted, and where no torques are known */
    double velocity[GAIT_MAX_LEGS][3];     /* what a unit of it adds to the velocity that a leg measures, */
    double bent[GAIT_MAX_LEGS][3];         /* and that through a low-pass */
    double off[GAIT_MAX_LEGS][3];          /* velocities of the legs less the predicted one, as well */
    double told, known;                    /* sums of the fit */
    uint8_t used;
} gait_flexure;

/* Samples and features of the network of legs. */
typedef struct gait_leg_state {
    double tau[2][GAIT_MAX_JOINTS], q[2][GAIT_MAX_JOINTS], dq[2][GAIT_MAX_JOINTS]; /* the last sample, this one */
    double gyro[2][3], accel[2][3];
    double no_torque[GAIT_MAX_LEGS]; /* s */
    double with_torque, without_torque; /* s */
    double last_dq[GAIT_MAX_JOINTS], ddq[GAIT_MAX_JOINTS], smooth_tau[GAIT_MAX_JOINTS];
    double rates_b[RATES][3]; /* newest first */
    double stepped;           /* stamp of the network's last step */
    double features[SHARED_FEATURES + LEG_FEATURES * GAIT_MAX_LEGS];
    float out[6 * GAIT_MAX_LEGS]; /* velocity and log-std of each leg */
    uint8_t begun, kinematic, torqueless; /* kinematic: the spare network is in use; torqueless: no torques are read */
    uint8_t seen[GAIT_MAX_LEGS], before[GAIT_MAX_LEGS];
    gait_flexure flexure;
    const double *shifts; /* that a smoother found, (legs, 3), or null: what joins the velocity that each leg measures */
} gait_leg_state;

/* Where feet last stood. */
typedef struct gait_feet_state {
    double ground_w[GAIT_MAX_LEGS][3];
    uint8_t known[GAIT_MAX_LEGS], torque; /* torque: whether forces are known */
} gait_feet_state;

/* Consistency of measurements with the predicted state. */
typedef struct gait_monitor {
    double lasting[3];               /* part of the disagreement that lasts, base axes, m/s */
    double lasting_rate;             /* the same of the angular rate about z, rad/s */
    double open[3];                  /* mean of the disagreement, base axes, m/s */
    double turn, heading;            /* mean of that of the rate, rad/s; what it has made of the heading, rad, */
    double aside[3];                 /* and of the position, world axes, m */
    double duration;                 /* s for which the velocity has been disputed */
    double distrust;                 /* s for which the IMU counts as disputed after a reset */
    double force_i[3];               /* low-passed specific force, IMU axes */
    double tilted;                   /* s for which it has not been along the vertical */
    double still;                    /* s for which nothing has moved */
    double disputed;                 /* s for which the measurement has been an outlier */
    double uninformed;               /* s without an informative measurement */
    double ratio, leg_ratio[GAIT_MAX_LEGS]; /* test ratios */
    double shown[3];                 /* s for which the flags that persist are still shown */
    int32_t resets;
    uint8_t lost;                    /* position and heading are not those of the start */
} gait_monitor;

/* Velocity by measurements compared with that by the IMU alone. Groups are the axes along the ground, and the vertical one. */
enum { ADAPT_LAGS = 15, ADAPT_SLOTS = 30 }; /* moments between the two that are compared; moments that are kept */
#define ADAPT_STEP 0.02 /* s from one moment to the next */
#define ADAPT_SPAN (ADAPT_STEP * ADAPT_LAGS)
typedef struct gait_adapt {
    double inertial[3];             /* what the IMU alone has added to the velocity since the start, world axes */
    double since;                   /* s since the last moment that was kept */
    double accel2;                  /* square of the noise density of the accelerometer, (m/s^2)^2/Hz */
    double kept, least;             /* of the average from one moment to the next; least factor */
    double factor[2];               /* on the variances that measurements claim */
    double noise2[2];               /* squares of the noise density by each group */
    double means[2][5];             /* of differences: weights, and weighted r, r^2, d^2, r d^2 */
    double average[3], weight[3];   /* of measured velocity less `inertial` over the last moments; sum of the weights in it */
    double known, counted;          /* differences so far, at most those that are averaged */
    double drift[3], expected[3];   /* part of a difference that lasts, m/s; variance that is usual */
    double usual[2];                /* mean squares of differences over claimed variances */
    double rise, gate;              /* by which it may rise at the next difference, m/s; variances beyond which it has a cause */
    double before[3];               /* `inertial` at the last moment */
    double accel_w[3], square_b[3]; /* mean acceleration while legs measure, world axes; its mean square, base axes */
    double swept[3];                /* integral of the mean, m/s */
    int32_t next, count;            /* count: moments in a row */
    double apart[ADAPT_SLOTS][3];    /* measured velocity less `inertial`, of the last moments */
    double variance[ADAPT_SLOTS][3]; /* of those measurements; 0: none */
} gait_adapt;

/* In a batch: cache lines of the context that steps next. */
enum { GAIT_FETCH_LINES = 512, GAIT_FETCH_AT_ONCE = 20 };
typedef struct gait_fetch {
    const char *from;
    int count, done;
    uint32_t lines[GAIT_FETCH_LINES];
} gait_fetch;

/* Members that a step of one method uses are close together: with a thousand robots they fill caches and address tables. The
 * networks' memory and scratch begin right behind the rows in use of P, so no row beyond them may be read or written. */
struct gait_t {
    const gait_config *config;
    gait_recorder *recorder; /* of the filter's steps, or null */
    ptrdiff_t memory, scratch; /* of its networks, in bytes from here */
    gait_fetch *fetch; /* of the batch that is under way, or null */
    double broken, whole; /* s with a leg out of use, and without */
    float predicted[6];
    int32_t contact_source;
    uint8_t align, measured, spare, has_joints;
    gait_input input;
    gait_monitor monitor;
    gait_adapt adapt;
    double tilt_t; /* of the last external measurement of roll and pitch that was taken */
    double safe_R[9], safe_p[3];       /* pose to return to after divergence */
    double next_step;                  /* stamp of the network's next sample */
    double joints_t;                   /* stamp of the joints below */
    float last[6 + 3 * GAIT_MAX_JOINTS], now[6 + 3 * GAIT_MAX_JOINTS]; /* network inputs: last sample, this one */
    double joints[4][GAIT_MAX_JOINTS], feet_in[3][GAIT_MAX_LEGS]; /* q, dq, q_des, tau; force, contact, leg_ok */
    gait_feet_state feet;
    gait_leg_state legs;
    gait_contact_state contacts;
    gait_filter filter;
};

/* Of the network, and of the spare one behind it. */
static inline float *gait_memory(gait_t *g)
{
    return (float *)((char *)g + g->memory);
}

/* Of whichever network runs. */
static inline float *gait_scratch(gait_t *g)
{
    return (float *)((char *)g + g->scratch);
}

/* The pose to return to after divergence. */
static inline void keep_pose(gait_t *g)
{
    memcpy(g->safe_R, g->filter.R, sizeof g->safe_R);
    memcpy(g->safe_p, g->filter.x[1], sizeof g->safe_p);
}

/* Into the second-level cache: the present step fills the first. */
#ifdef __GNUC__
#define GAIT_FETCH(address) __builtin_prefetch(address, 0, 2)
#else
#define GAIT_FETCH(address) (void)(address)
#endif

/* Fetch the next of those lines: a processor has about twenty requests under way, so a step calls this many times. */
static inline void fetch_next(const gait_t *g)
{
    gait_fetch *plan = g->fetch;
    for (int k = 0; plan && k < GAIT_FETCH_AT_ONCE && plan->done < plan->count; k++)
        GAIT_FETCH(plan->from + 64 * (size_t)plan->lines[plan->done++]);
}

static inline void fetch_range(const void *from, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 64) GAIT_FETCH((const char *)from + i);
}

/* chain.c */
void leg_pass(const gait_robot *robot, int leg, const double *q, leg_pose *m);
void leg_sum(const double *columns, int joints, const double *x, double out[3]);
void leg_foot_velocity(const leg_pose *m, const double *dq, const double omega_b[3], double out[3]);
void leg_foot_rate(const leg_pose *m, const double *dq, const double omega_b[3], double out[3]);
void leg_torque(const gait_robot *robot, int leg, const leg_pose *m, const double *dq, const double *ddq,
                const double gravity_b[3], double *torque);
int leg_ground_wrench(const gait_robot *robot, int leg, const leg_pose *m, const double *tau, const double *tau_free,
                      double wrench_b[6]);
double pd_torque(const gait_robot *robot, int joint, double e, double dq);

/* soles.c */
void leg_contact_lever(const gait_robot *robot, int leg, const leg_pose *m, const double up_b[3], const double *wrench_b,
                       double out[3]);
int all_soles(const gait_robot *robot);
int sole_rests(const gait_robot *robot, int leg, const leg_pose *m, const double up_b[3], const double lever_b[3], double load);
void sole_bias(const gait_t *g, const double rate_b[3], double bias_i[3]);
void soles_correct(gait_t *g);

/* flexure.c */
void flexure_reset(gait_flexure *x, const gait_robot *robot, int used);
void flexure_velocity(const leg_pose *m, const double *tau_rate, const double above_b[3], double out[3]);
void weight_flexure(const gait_robot *robot, const leg_pose *m, const double *dq, double *tau_rate, double sway_b[3]);
void flexure_learn(gait_t *g, const prediction *p, const double bias_b[3]);

/* adapt.c */
void adapt_reset(gait_adapt *a, int soles, int contacts);
void adapt_forget(gait_adapt *a);
int adapt_due(const gait_adapt *a);
int adapt_lately(const gait_adapt *a, double difference[3]);
int adapt_drift(const gait_adapt *a, double gate, double excess[3]);
void adapt_measure(gait_adapt *a, const double R_wb[9], const double velocity_w[3], const double variance_w[3],
                   const double spread_w[3]);

/* estimator.c */
int take_attitude(gait_t *g);
gait_sample sample_of(const gait_config *c, const double *row); /* one row of numbers */

/* network_step.c */
uint32_t network_step(gait_t *g, const gait_sample *sample, int verdict, uint32_t health);
const gait_network *network_of(gait_t *g, float **memory);
void velocity_variance(const gait_filter *f, const double A[9], double out[3]);
prediction predicted_state(const gait_t *g);

/* Share of the network's period by which a sample may be early or late and still be taken as the one of that instant. */
#define GAIT_JITTER 0.2

/* propagate.c */
int propagate(gait_t *g, const gait_settings *s, const gait_noise *noise, const double gyro[3], const double accel[3],
              double dt);
void bridge_gap(gait_t *g, uint32_t health);
void bridge_blind(gait_t *g, double dt, uint32_t health);
void propagate_by_imu(gait_t *g, double dt, uint32_t health);
double cut_off2(const gait_sensor *s);
gait_noise imu_noise(const gait_t *g, double dt);

/* output.c */
void filter_cov(const gait_filter *f, double *cov);
void filter_output(const gait_filter *f, const gait_robot *robot, const double gyro[3], gait_state *out);
void write_state(gait_t *g, uint32_t health, gait_state *out);

/* external.c */
void rotation_between(const double A[9], const double B[9], double out[3]); /* rotation vector of A B' */
void divide_jacobian(const double w[3], double x[3]);                       /* x <- V(w)^-1 x */

/* feet.c */
size_t feet_doubles(const gait_config *c);
void feet_gather(gait_t *g, const gait_sample *sample);
void feet_write(gait_t *g, const gait_state *state, double *out);

/* smooth.c */
int recorder_step(gait_t *g, const gait_settings *s, const gait_noise *noise, const double gyro[3], const double accel[3],
                  double dt);
void recorder_end(gait_t *g);
void recorder_rewind(gait_t *g);

/* contacts.c */
void contacts_reset(gait_t *g);
uint32_t contacts_step(gait_t *g, const gait_sample *sample);

/* legs.c */
void legs_reset(gait_t *g);
void legs_forget(gait_t *g);
uint32_t legs_gather(gait_t *g, const gait_sample *sample);
void legs_features(const gait_robot *robot, double delay, gait_leg_state *s, const double gyro[3],
                   const double accel[3], const double *q, const double *dq, const double *tau, double dt);
void legs_step(gait_t *g, double part, double moment);
int legs_fuse(gait_t *g, gait_measurement *out, int still, uint32_t *health);
const gait_leg_network *legs_network(gait_t *g, float **memory);

/* admit.c */
int gait_admit(gait_t *g, const gait_sample *sample, uint32_t *health);

/* imu_checks.c */
uint32_t imu_admit(gait_input *in, const gait_settings *s, const gait_sample *sample, int at_rest);

/* joint_checks.c */
uint32_t joints_admit(gait_t *g, const gait_sample *sample);
int joints_rest(const gait_input *in, const gait_robot *robot);
uint32_t torques_admit(gait_t *g, const gait_sample *sample, double *tau, uint8_t *found);
void torques_watch(gait_t *g, const double force_b[3], const double accel_b[3], double dt);

/* monitor.c */
void base_axes(const gait_t *g, double R_wb[9]);
void monitor_reset(gait_t *g);
void monitor_doubt(gait_t *g);
uint32_t monitor_consensus(gait_t *g, const double delta_b[3], const double predicted[3], const double instant[3],
                           const double spread[3], const double claimed[3], double dt);
void monitor_heading(gait_t *g, double difference, double variance, double dt);
void monitor_rate(gait_t *g, double difference, double variance, double dt);
uint32_t monitor_gravity(gait_t *g);
int monitor_still(gait_t *g, double dt);
int feet_may_stand(const gait_t *g, const double R_wb[9]);
uint32_t monitor_end(gait_t *g, uint32_t health);
void monitor_output(const gait_t *g, gait_state *state);
void monitor_mounting(gait_state *state);
int monitor_valid(const gait_t *g, const gait_state *state);

#endif
