// Velocity of a robot that stands still, from an exported estimator.
#include <array>
#include <cstdio>
#include <memory>

#include "gait_go1.h"

// One estimator; it can be moved, and runs in one thread at a time.
class Estimator {
public:
    Estimator() : context_(gait_init(storage_.get(), &gait_go1_config)) {}

    // Returns bits of health; 0 means that all is well.
    std::uint32_t update(const gait_sample &sample) { return gait_update(context_, &sample, &output_.state); }

    const gait_state &state() const { return output_.state; }

private:
    std::unique_ptr<gait_storage> storage_{new gait_storage};
    gait_t *context_;
    gait_output output_{};
};

int main()
{
    const std::array<double, 3> gyro{0.0, 0.0, 0.0}, accel{0.0, 0.0, 9.81};
    std::array<double, GAIT_MAX_JOINTS> q{}, dq{};
    for (int leg = 0; leg < GAIT_MAX_LEGS; leg++) {
        q[3 * leg + 1] = 0.9;
        q[3 * leg + 2] = -1.8;
    }
    Estimator estimator;
    for (int k = 0; k < 500; k++) {
        gait_sample sample{};
        sample.t = k / GAIT_RATE;
        sample.gyro = gyro.data();
        sample.accel = accel.data();
        sample.q = q.data();
        sample.dq = dq.data();
        sample.q_des = q.data();
        if (const std::uint32_t health = estimator.update(sample)) std::printf("sample %d: health %u\n", k, health);
    }
    const double *v = estimator.state().vel_b;
    std::printf("vel_b %.4f %.4f %.4f m/s\n", v[0], v[1], v[2]);
    return 0;
}
