//! Levenberg-Marquardt: the smallest sum of squares of a handful of parameters within bounds.

/// A weighted sum of squared residuals at one place, with what a step needs to know about its surroundings.
#[derive(Debug, Clone)]
pub(super) struct Squares<const P: usize> {
    /// The sum.
    pub(super) loss: f64,
    /// Half the gradient: sum of weight * residual * slope.
    gradient: [f64; P],
    /// Half the Gauss-Newton curvature: sum of weight * slope * slope^T. Only the lower triangle is kept.
    curvature: [[f64; P]; P],
}

impl<const P: usize> Squares<P> {
    /// An empty sum.
    pub(super) fn new() -> Self {
        Self { loss: 0.0, gradient: [0.0; P], curvature: [[0.0; P]; P] }
    }

    /// Adds `weight * residual^2`; `slope` is the derivative of the residual by each parameter.
    #[inline(always)]
    pub(super) fn add(&mut self, weight: f64, residual: f64, slope: &[f64; P]) {
        self.loss += weight * residual * residual;
        for i in 0..P {
            let factor = weight * slope[i];
            self.gradient[i] += factor * residual;
            for (sum, slope) in self.curvature[i][..=i].iter_mut().zip(slope) {
                *sum += factor * slope;
            }
        }
    }

    /// The step of the `free` parameters that minimises the quadratic model, damped; none if rounding ate it.
    fn step(&self, damping: f64, free: &[bool; P]) -> Option<[f64; P]> {
        // In units in which the diagonal is 1, so that an angle and a length may differ by any factor.
        let largest = (0..P).filter(|&i| free[i]).map(|i| self.curvature[i][i]).fold(0.0, f64::max);
        let unit: [f64; P] = std::array::from_fn(|i| {
            // A parameter that nothing depends on stays where it is.
            let dead = self.curvature[i][i] <= f64::MIN_POSITIVE || self.curvature[i][i] <= 1e-300 * largest;
            if dead || !free[i] { 0.0 } else { 1.0 / self.curvature[i][i].sqrt() }
        });
        let mut factor = [[0.0; P]; P];
        for i in 0..P {
            for j in 0..=i {
                let mut sum = self.curvature[i][j] * unit[i] * unit[j];
                if i == j {
                    sum = if unit[i] == 0.0 { 1.0 } else { sum + damping };
                }
                sum -= factor[i][..j].iter().zip(&factor[j][..j]).map(|(a, b)| a * b).sum::<f64>();
                if i == j {
                    if sum.is_nan() || sum <= 0.0 {
                        return None;
                    }
                    factor[i][i] = sum.sqrt();
                } else {
                    factor[i][j] = sum / factor[j][j];
                }
            }
        }
        let mut step = [0.0; P];
        for i in 0..P {
            let before: f64 = (0..i).map(|k| factor[i][k] * step[k]).sum();
            step[i] = (-self.gradient[i] * unit[i] - before) / factor[i][i];
        }
        for i in (0..P).rev() {
            let after: f64 = (i + 1..P).map(|k| factor[k][i] * step[k]).sum();
            step[i] = (step[i] - after) / factor[i][i];
        }
        for (step, unit) in step.iter_mut().zip(unit) {
            *step *= unit;
        }
        step.iter().all(|s| s.is_finite()).then_some(step)
    }
}

/// What is to be minimised.
pub(super) trait Problem<const P: usize> {
    /// The sum of squares at a place within the bounds.
    fn squares(&self, place: &[f64; P]) -> Squares<P>;

    /// Lowest and highest value of each parameter. Those of a later one may depend on the earlier ones of `place`.
    fn bounds(&self, place: &[f64; P]) -> [[f64; 2]; P];
}

/// A place and how good it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Minimum<const P: usize> {
    pub(super) place: [f64; P],
    pub(super) loss: f64,
}

/// Walks downhill from `start`, which is moved into the bounds, for at most `steps` evaluations. Every accepted step
/// lowers the loss, so the result is never worse than the start.
pub(super) fn minimize<const P: usize>(problem: &impl Problem<P>, start: [f64; P], steps: usize) -> Minimum<P> {
    /// A step that gains less than this part of the loss is the last one.
    const GAIN: f64 = 1e-7;
    let mut place = within(problem, start);
    let mut here = problem.squares(&place);
    let mut damping = 1e-3;
    for _ in 0..steps {
        let bounds = problem.bounds(&place);
        let free = std::array::from_fn(|i| {
            let [low, high] = bounds[i];
            let outward = if place[i] <= low { here.gradient[i] > 0.0 } else { here.gradient[i] < 0.0 };
            !(outward && (place[i] <= low || place[i] >= high))
        });
        let Some(step) = here.step(damping, &free) else {
            damping *= 10.0;
            continue;
        };
        let trial = within(problem, std::array::from_fn(|i| place[i] + step[i]));
        if trial == place {
            break;
        }
        let there = problem.squares(&trial);
        if there.loss < here.loss {
            let gain = (here.loss - there.loss) / here.loss;
            (place, here) = (trial, there);
            damping = (0.2 * damping).max(1e-9);
            if gain < GAIN {
                break;
            }
        } else {
            damping *= 8.0;
            if damping > 1e9 {
                break;
            }
        }
    }
    Minimum { place, loss: here.loss }
}

/// A place moved into the bounds, parameter by parameter.
fn within<const P: usize>(problem: &impl Problem<P>, mut place: [f64; P]) -> [f64; P] {
    for i in 0..P {
        let [low, high] = problem.bounds(&place)[i];
        place[i] = place[i].max(low).min(high);
    }
    place
}

/// The largest error of the gradient against central differences of the loss, relative to its largest entry.
#[cfg(test)]
pub(super) fn gradient_error<const P: usize>(problem: &impl Problem<P>, place: &[f64; P]) -> f64 {
    let gradient = problem.squares(place).gradient;
    let step = 1e-6;
    let difference = |i: usize| {
        let moved = |by: f64| {
            let mut place = *place;
            place[i] += by;
            problem.squares(&place).loss
        };
        (moved(step) - moved(-step)) / (2.0 * step)
    };
    let largest = gradient.iter().fold(0.0f64, |most, g| most.max(2.0 * g.abs()));
    // The sum passes a NaN on, a maximum would not.
    (0..P).map(|i| (2.0 * gradient[i] - difference(i)).abs()).sum::<f64>() / largest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rosenbrock's valley as a sum of squares, smallest at (1, 1), and a third parameter that nothing depends on.
    struct Valley {
        highest: f64,
    }

    impl Problem<3> for Valley {
        fn squares(&self, &[x, y, _]: &[f64; 3]) -> Squares<3> {
            let mut squares = Squares::new();
            squares.add(100.0, y - x * x, &[-2.0 * x, 1.0, 0.0]);
            squares.add(1.0, 1.0 - x, &[-1.0, 0.0, 0.0]);
            squares
        }

        fn bounds(&self, _: &[f64; 3]) -> [[f64; 2]; 3] {
            [[-5.0, self.highest], [-5.0, 5.0], [-5.0, 5.0]]
        }
    }

    #[test]
    fn finds_the_bottom_of_a_bent_valley() {
        let found = minimize(&Valley { highest: 5.0 }, [-1.2, 1.0, 7.0], 200);
        assert!(found.loss <= 1e-12, "{found:?}");
        for (got, expected) in found.place.into_iter().zip([1.0, 1.0, 5.0]) {
            assert!((got - expected).abs() <= 1e-6, "{found:?}");
        }
    }

    #[test]
    fn stays_within_the_bounds_and_uses_what_is_left() {
        // At x = 1/2 the best y is 1/4; what remains is (1/2)^2.
        let found = minimize(&Valley { highest: 0.5 }, [-1.2, 1.0, 0.0], 200);
        assert!((found.place[0] - 0.5).abs() <= 1e-12 && (found.place[1] - 0.25).abs() <= 1e-6, "{found:?}");
        assert!((found.loss - 0.25).abs() <= 1e-9, "{found:?}");
    }
}
