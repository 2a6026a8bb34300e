//! The Kalman filter of a state of two columns and an observation of one, in f64 from its equations.

/// A normal distribution.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gaussian {
    pub(super) mean: [f64; 2],
    pub(super) covariance: [[f64; 2]; 2],
}

/// `x' = A x + process * noise`, `y = h x' + noise * noise`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Linear {
    pub(super) start: Gaussian,
    pub(super) motion: [[f64; 2]; 2],
    pub(super) process: f64,
    pub(super) direction: [f64; 2],
    pub(super) noise: f64,
}

impl Linear {
    /// The posterior after a step, and the log-density of its observation before it was made.
    pub(super) fn step(&self, before: Gaussian, observed: f64) -> (Gaussian, f64) {
        let Self { motion: a, direction: h, .. } = self;
        let mean: [f64; 2] = std::array::from_fn(|i| a[i][0] * before.mean[0] + a[i][1] * before.mean[1]);
        let mut p = [[0.0; 2]; 2];
        for i in 0..2 {
            for j in 0..2 {
                for k in 0..2 {
                    for l in 0..2 {
                        p[i][j] += a[i][k] * before.covariance[k][l] * a[j][l];
                    }
                }
            }
            p[i][i] += self.process * self.process;
        }
        let ph: [f64; 2] = std::array::from_fn(|i| p[i][0] * h[0] + p[i][1] * h[1]);
        let s = h[0] * ph[0] + h[1] * ph[1] + self.noise * self.noise;
        let r = observed - h[0] * mean[0] - h[1] * mean[1];
        let after = Gaussian {
            mean: std::array::from_fn(|i| mean[i] + ph[i] * r / s),
            covariance: std::array::from_fn(|i| std::array::from_fn(|j| p[i][j] - ph[i] * ph[j] / s)),
        };
        (after, -0.5 * (r * r / s + s.ln() + std::f64::consts::TAU.ln()))
    }
}
