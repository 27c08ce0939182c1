/* Plausibility of encoders and torques: within range, changing, angles and velocities that agree, torques that carry the
 * robot. A check is one function here, and its threshold stands before it. */
#include <math.h>

#include "core.h"

static const double MAX_TARGET = 100.0; /* rad: no joint target is larger */

static double value(const double *field, int i)
{
    return field ? field[i] : NAN;
}

/* Follow a joint's velocity by differences of its angle and as reported, through the same low-pass, and how far the two
 * are apart. */
static const double DIFFERENCE_TIME = 0.006, PER_DIFFERENCE = 1.0 / 0.006, MEAN_TIME = 0.1; /* s */
static void follow_joint(gait_joint_state *s, int j, double q, double dq, double dt, int unseen)
{
    const double share = dt / (DIFFERENCE_TIME + dt), mean = dt / (MEAN_TIME + dt);
    if (unseen) { /* the first sample, or after a gap: how the joint moved until then is not known */
        s->slow_q[j] = q - DIFFERENCE_TIME * dq;
        s->slow_dq[j] = dq;
        return;
    }
    s->slow_q[j] += share * (q - s->slow_q[j]);
    s->slow_dq[j] += share * (dq - s->slow_dq[j]);
    const double rate = (q - s->slow_q[j]) * PER_DIFFERENCE, difference = rate - s->slow_dq[j];
    s->moves[j] += mean * (rate * rate - s->moves[j]);
    s->turns[j] += mean * (s->slow_dq[j] * s->slow_dq[j] - s->turns[j]);
    s->apart[j] += mean * (difference * difference - s->apart[j]);
}

/* Velocities that are zero while the angle moves, or the other way round; or that contradict each other, for a while. */
static const double LEAST_MOTION = 0.2, DEAD = 0.03, CONTRADICTION = 1.5; /* rad/s; shares of the mean squares */
static const double DOUBT_TIME = 0.05; /* s */
static const double QUICK = 0.5, QUICKLY = 5.0; /* rad/s: a joint that turns so fast is zero to the last bit only if it is
                                                 * dead, so doubt grows so many times as fast */
enum { AGREE, VELOCITY_DEAD, CONTRADICT };
static int compare_joint(gait_joint_state *s, int j, double dq, double rate, double dt)
{
    const double moves = s->moves[j], turns = s->turns[j], size = larger(moves, turns);
    const int contradict = turns * DEAD > moves || s->apart[j] > CONTRADICTION * size;
    const int verdict = moves * DEAD > turns ? VELOCITY_DEAD : contradict ? CONTRADICT : AGREE;
    const int zero = dq == 0.0 && moves > QUICK * QUICK && fabs(rate) > QUICK;
    if (zero) s->doubt[j] += smaller(QUICKLY * dt, 0.4 * DOUBT_TIME); /* one zero alone is a matter of resolution */
    else s->doubt[j] = verdict != AGREE && size > LEAST_MOTION * LEAST_MOTION ? s->doubt[j] + dt : 0.0;
    return s->doubt[j] <= DOUBT_TIME ? AGREE : zero ? VELOCITY_DEAD : verdict;
}

/* An angle that does not change to the last bit while others of its leg move, and neither does its velocity, or it is not
 * small: a joint that hardly moves changes its angle by less than the resolution of an encoder. */
static const double STUCK_TIME = 0.1, LEG_MOTION = 0.5, HARDLY = 0.05; /* s, rad/s, rad/s */
static int stands_still(const gait_input *in, int j, double q, double dq)
{
    return q == in->raw_q[j] && (dq == in->raw_dq[j] || fabs(dq) > HARDLY);
}

static int encoder_stuck(const gait_joint_state *s, int j, double speed2)
{
    return s->same[j] >= STUCK_TIME && speed2 > LEG_MOTION * LEG_MOTION;
}

/* Judge the joints of one leg and keep them if they can be true. needs_target: a leg without a joint target is of no
 * use. */
static uint32_t admit_leg(gait_input *in, const gait_config *config, const gait_sample *sample, int leg, int needs_target)
{
    const gait_robot *robot = &config->robot;
    const int begin = robot->leg_start[leg], end = robot->leg_start[leg + 1];
    gait_joint_state *s = &in->joints;
    int sane = 1, same = 1, aimed = 1;
    uint32_t found = 0;
    for (int j = begin; j < end; j++) {
        const double q = value(sample->q, j), dq = value(sample->dq, j);
        /* Written so that a nan is not sane either. */
        sane = sane && q >= robot->q_lower[j] && q <= robot->q_upper[j] && fabs(dq) <= robot->dq_limit[j];
        same = same && q == in->raw_q[j] && dq == in->raw_dq[j];
        aimed = aimed && fabs(value(sample->q_des, j)) < MAX_TARGET;
    }
    const double step = same ? 0.0 : in->unchanged[leg] + in->dt; /* numbers that are repeated tell of no motion */
    for (int j = begin; j < end; j++) {
        const double q = value(sample->q, j), dq = value(sample->dq, j);
        s->same[j] = stands_still(in, j, q, dq) ? s->same[j] + step : 0.0;
        in->raw_q[j] = q;
        in->raw_dq[j] = dq;
    }
    in->unchanged[leg] = same ? in->unchanged[leg] + in->dt : 0.0;
    in->no_target[leg] = aimed ? 0.0 : in->no_target[leg] + in->dt;
    in->ok[leg] = sane && !(sample->leg_ok && sample->leg_ok[leg] == 0.0);
    if (!in->ok[leg]) {
        s->known[leg] = 0;
        return 0;
    }
    const int unseen = !s->known[leg] || in->gap > 0.0 || step > config->settings.hold;
    s->speed2[leg] = 0.0;
    for (int j = begin; j < end; j++) {
        if (!s->known[leg]) s->moves[j] = s->turns[j] = s->apart[j] = s->doubt[j] = 0.0;
        follow_joint(s, j, sample->q[j], sample->dq[j], step, unseen);
        s->speed2[leg] = larger(s->speed2[leg], larger(s->moves[j], s->turns[j]));
    }
    s->known[leg] = 1;
    for (int j = begin; j < end; j++) {
        /* A target that is missing for a moment stays where it was, and so does the motor. */
        const double target = aimed ? sample->q_des[j] : in->q[j] + in->e[j];
        in->q[j] = sample->q[j];
        in->dq[j] = sample->dq[j];
        in->e[j] = aimed || in->leg_known[leg] ? target - in->q[j] : 0.0;
        const double rate = (sample->q[j] - s->slow_q[j]) * PER_DIFFERENCE;
        const int verdict = compare_joint(s, j, sample->dq[j], rate, step);
        if (verdict == VELOCITY_DEAD) {
            in->dq[j] = rate;
            found |= GAIT_DQ_DEAD | 1u << (GAIT_FIRST_LEG + leg);
        } else if (verdict == CONTRADICT || encoder_stuck(s, j, s->speed2[leg])) {
            found |= GAIT_ENCODER_STUCK;
            in->ok[leg] = 0;
        }
    }
    if (needs_target && (in->no_target[leg] > config->settings.hold || (!aimed && !in->leg_known[leg]))) in->ok[leg] = 0;
    else in->leg_known[leg] = 1;
    return found;
}

/* Legs whose every number has stood still for `stale` seconds while another leg moves, or for `hold` seconds while the body
 * turns, since joints that come at a low rate repeat: without either, it is a robot at rest. A leg that was found so
 * stays out of use until a number changes. Returns whether one was in use until now. */
static const double OTHERS_MOVE = 0.1, BODY_TURNS = 0.3; /* rad/s */
static int silence_stale(gait_input *in, const gait_robot *robot, const gait_settings *s)
{
    const int turns = in->imu[GYRO].known && in->imu[GYRO].blind == 0.0 && in->imu[GYRO].level > BODY_TURNS;
    int found = 0;
    for (int leg = 0; leg < robot->legs; leg++) {
        int others = 0;
        for (int other = 0; other < robot->legs; other++)
            others = others || (other != leg && in->unchanged[other] < s->stale
                                && in->joints.speed2[other] > OTHERS_MOVE * OTHERS_MOVE);
        const int stands = (others && in->unchanged[leg] >= s->stale) || (turns && in->unchanged[leg] >= s->hold);
        found = found || (stands && !in->stale[leg] && in->ok[leg]);
        in->stale[leg] = (uint8_t)(stands || (in->stale[leg] && in->unchanged[leg] > 0.0));
        if (in->stale[leg]) in->ok[leg] = 0;
    }
    return found;
}

/* Whether no joint moves. */
int joints_rest(const gait_input *in, const gait_robot *robot)
{
    for (int leg = 0; leg < robot->legs; leg++)
        if (in->joints.known[leg] && in->joints.speed2[leg] > OTHERS_MOVE * OTHERS_MOVE) return 0;
    return 1;
}

uint32_t joints_admit(gait_t *g, const gait_sample *sample)
{
    const gait_config *config = g->config;
    const int needs_target = config->method == GAIT_VELOCITY && config->reads_targets;
    gait_input *in = &g->input;
    uint32_t health = 0;
    for (int leg = 0; leg < config->robot.legs; leg++) health |= admit_leg(in, config, sample, leg, needs_target);
    if (silence_stale(in, &config->robot, &config->settings)) monitor_doubt(g);
    for (int leg = 0; leg < config->robot.legs; leg++)
        if (!in->ok[leg]) health |= GAIT_STALE_LEG | GAIT_BAD_SAMPLE | 1u << (GAIT_FIRST_LEG + leg);
    return health;
}

/* Share of the weight that a robot's torques carry, of what the accelerometer expects of them: both low-passed as vectors,
 * since steps shake the accelerometer to and fro, which lengths add up. Beyond IMPOSSIBLE it is none at all; beyond
 * PLAUSIBLE it is none if the torques of the joint targets differ. Returns whether there is a share: a body that falls has
 * no weight. */
static const double TORQUE_TIME = 0.2; /* of the means, s */
static const double LEAST_SUPPORT = 0.4; /* g */
static const double PLAUSIBLE[2] = {0.45, 1.6}, IMPOSSIBLE[2] = {-0.3, 2.2};
static int follow_support(gait_torque_state *s, double gravity, const double force_b[3], const double accel_b[3], double dt,
                          double *part)
{
    const double share = dt / (TORQUE_TIME + dt);
    double along = 0.0, norm2 = 0.0;
    s->seen += share * (1.0 - s->seen);
    for (int i = 0; i < 3; i++) {
        s->carried[i] += share * (force_b[i] - s->carried[i]);
        s->expected[i] += share * (accel_b[i] / gravity - s->expected[i]);
        along += s->carried[i] * s->expected[i];
        norm2 += s->expected[i] * s->expected[i];
    }
    *part = norm2 > 0.0 ? along / norm2 : 0.0;
    return norm2 > LEAST_SUPPORT * LEAST_SUPPORT * s->seen * s->seen;
}

static int within(double x, const double limits[2])
{
    return x > limits[0] && x < limits[1];
}

/* Whether a leg rests on a stop of one of its joints, which then bears what its torque does not tell. */
static const double STOP = 0.03; /* rad */
static int any_at_stop(const gait_input *in, const gait_config *config)
{
    const gait_robot *robot = &config->robot;
    const double inside = config->settings.joint_margin + STOP;
    for (int leg = 0; leg < robot->legs; leg++)
        for (int j = robot->leg_start[leg]; in->ok[leg] && j < robot->leg_start[leg + 1]; j++)
            if (in->q[j] < robot->q_lower[j] + inside || in->q[j] > robot->q_upper[j] - inside) return 1;
    return 0;
}

/* Torques that are ignored are used again once they have carried the robot for a while. Those of the joint targets do not
 * decide that: a controller with feed-forward torques never agrees with them. Legs are taken as massless, which is right
 * on average. */
static const double RETURN_TIME = 0.5; /* s */
static void review_torques(gait_t *g, const gait_sample *sample)
{
    static const double massless[GAIT_LEG_LINKS] = {0.0};
    const gait_robot *robot = &g->config->robot;
    gait_torque_state *s = &g->input.torque;
    double sum_b[3] = {0.0}, accel_b[3], wrench_b[6], part;
    for (int leg = 0; leg < robot->legs; leg++) {
        leg_pose m;
        leg_pass(robot, leg, g->input.q + robot->leg_start[leg], &m);
        if (!leg_ground_wrench(robot, leg, &m, sample->tau + robot->leg_start[leg], massless, wrench_b)) continue;
        for (int i = 0; i < 3; i++) sum_b[i] += wrench_b[i] / robot->weight;
    }
    rotate(robot->R_bi, g->input.accel, accel_b);
    if (!follow_support(s, fabs(g->config->settings.gravity), sum_b, accel_b, g->input.dt, &part)) return;
    s->wrong = within(part, PLAUSIBLE) ? s->wrong - g->input.dt : RETURN_TIME;
    if (s->wrong > 0.0) return;
    s->ignored = 0;
    s->wrong = 0.0;
}

/* A joint that is far from its target while its torque is not what the PD loop makes of that: the encoder is wrong, as one
 * with the other sign is. */
static const double FAR_OFF = 1.0, FAR_TORQUE = 0.5, CONTRADICTS_TIME = 0.1; /* rad; share of the torque limit; s */
static uint32_t encoder_contradicts(gait_input *in, const gait_robot *robot, int leg, const double *tau, int compared)
{
    int found = 0;
    for (int j = robot->leg_start[leg]; j < robot->leg_start[leg + 1]; j++) {
        double *time = &in->torque.contradicts[j];
        const int far = compared && in->ok[leg] && fabs(in->e[j]) > FAR_OFF
            && fabs(tau[j] - pd_torque(robot, j, in->e[j], in->dq[j])) > FAR_TORQUE * robot->torque_limit[j];
        *time = far ? *time + in->dt : 0.0;
        found = found || *time > CONTRADICTS_TIME;
    }
    if (!found) return 0;
    in->ok[leg] = 0;
    return GAIT_STALE_LEG | GAIT_BAD_SAMPLE | 1u << (GAIT_FIRST_LEG + leg);
}

/* Torques and joint targets that were there have been missing for `hold` seconds. */
static uint32_t torques_missing(gait_torque_state *s, int any, double hold, double dt)
{
    s->missing = any ? 0.0 : s->missing + dt;
    s->had = (uint8_t)(s->had || any);
    return s->had && s->missing > hold ? GAIT_NO_TORQUE : 0;
}

/* Torques of every leg in `tau`, in `found` which legs have any: as measured, or what the PD loop makes of the tracking
 * error where they were not, or do not carry the robot. Returns health bits. */
static const double TORQUE_MARGIN = 3.0; /* torques beyond so many times the limit were not measured */
uint32_t torques_admit(gait_t *g, const gait_sample *sample, double *tau, uint8_t *found)
{
    const gait_robot *robot = &g->config->robot;
    gait_input *in = &g->input;
    gait_torque_state *s = &in->torque;
    double apart = 0.0, size = 0.0;
    int compared = 0, all = 1, any = 0;
    uint32_t health = 0;
    for (int leg = 0; leg < robot->legs; leg++) {
        int measured = 1, driven = 0;
        for (int j = robot->leg_start[leg]; j < robot->leg_start[leg + 1]; j++) {
            /* Written so that a nan is not measured either. */
            measured = measured && fabs(value(sample->tau, j)) <= TORQUE_MARGIN * robot->torque_limit[j];
            driven = driven || robot->kp[j] > 0.0;
        }
        const int aimed = driven && in->no_target[leg] == 0.0; /* without gains, targets tell no torque */
        for (int j = robot->leg_start[leg]; j < robot->leg_start[leg + 1]; j++) {
            const double commanded = aimed ? pd_torque(robot, j, in->e[j], in->dq[j]) : 0.0;
            if (measured && aimed) {
                const double difference = sample->tau[j] - commanded;
                apart += difference * difference;
                size += larger(sample->tau[j] * sample->tau[j], commanded * commanded);
                compared = 1;
            }
            if (measured && !s->ignored) tau[j] = sample->tau[j];
            else if (aimed && in->ok[leg]) tau[j] = commanded;
        }
        all = all && measured;
        found[leg] = (uint8_t)((measured && !s->ignored) || aimed);
        any = any || found[leg];
        health |= encoder_contradicts(in, robot, leg, sample->tau, measured && aimed);
    }
    s->measured = (uint8_t)all;
    if (compared) {
        const double share = in->dt / (TORQUE_TIME + in->dt);
        s->apart += share * (apart - s->apart);
        s->size += share * (size - s->size);
    }
    s->compared = (uint8_t)compared;
    if (s->ignored && all && !any_at_stop(in, g->config)) review_torques(g, sample);
    return health | torques_missing(s, any, g->config->settings.hold, in->dt) | (s->ignored ? GAIT_BAD_TORQUE : 0);
}

/* Whether legs that carried the robot do so no more, by their own torques: it hangs in a hand, or lies. */
static const double LIFTED = 0.25, LIFTED_TIME = 0.04; /* share of the weight; s */
static const double LEAST_SEEN = 0.5; /* of the means: the first samples alone show no robot that stands */
static void follow_lift(gait_torque_state *s, double part, int doubted, double dt)
{
    s->supported = (uint8_t)(s->supported || (s->seen > LEAST_SEEN && !doubted && within(part, PLAUSIBLE)));
    s->unloaded = s->supported && !doubted && part < LIFTED ? s->unloaded + dt : 0.0;
    s->lifted = (uint8_t)(s->unloaded > LIFTED_TIME || (s->lifted && !doubted && part < PLAUSIBLE[0]));
}

/* Measured torques must carry the weight: the sum of the ground forces (in weights) along the specific force is the
 * specific force (in g), on average, unless something else carries the robot: then there is no verdict. */
static const double WRONG_TIME = 0.1;  /* s; */
static const double SURE_TIME = 0.075; /* and where they differ from those of the joint targets by as much as no torque would */
static const double NO_TORQUE = 0.9;
static const double APART = 0.3;       /* share of the mean square of torques */
void torques_watch(gait_t *g, const double force_b[3], const double accel_b[3], double dt)
{
    gait_torque_state *s = &g->input.torque;
    double part;
    if (s->ignored || !s->measured || any_at_stop(&g->input, g->config)) return;
    if (!follow_support(s, fabs(g->config->settings.gravity), force_b, accel_b, dt, &part)) return;
    const int doubted = !within(part, IMPOSSIBLE)
        || (!within(part, PLAUSIBLE) && s->compared && s->apart > APART * s->size);
    s->wrong = doubted ? s->wrong + dt : 0.0;
    follow_lift(s, part, doubted, dt);
    const int sure = s->compared && s->apart > NO_TORQUE * s->size;
    if (s->wrong <= (sure ? SURE_TIME : WRONG_TIME)) return;
    s->ignored = 1;
    s->lifted = 0;
    s->wrong = RETURN_TIME;
}
