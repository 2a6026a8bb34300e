//! The natural shape with which the paper shows what a Fourier curve is: the outline of a frog, from the segmentation
//! of an image.
//!
//! The corners are those in the source of the paper's figure "A 2d polygon obtained from the segmentation of a natural
//! image", in its order, which is clockwise, without the closing duplicate. Its figure traces curves of several orders
//! M through them; [`curve`] makes one of any order.

use super::fourier::{self, Curve};
use super::plane::{self, Point};

/// The longest segment between points that are transformed. The paper's points, listed in its source, are the corners
/// and the middles of most sides.
const LONGEST_SEGMENT: f64 = 0.03;

/// Corners of the polygon, inside the unit square.
#[rustfmt::skip]
pub(crate) const CORNERS: [Point; 102] = [
    [0.023923, 0.50239], [0.052632, 0.54067], [0.08134, 0.57416], [0.10526, 0.61244],
    [0.11962, 0.65072], [0.14833, 0.689], [0.1866, 0.70335], [0.22488, 0.69378],
    [0.23923, 0.6555], [0.27751, 0.67464], [0.311, 0.70335], [0.34928, 0.73684],
    [0.38756, 0.75598], [0.42584, 0.77512], [0.46411, 0.78947], [0.49761, 0.82775],
    [0.5311, 0.86603], [0.56938, 0.89474], [0.5933, 0.93301], [0.59809, 0.97129],
    [0.62679, 1.0], [0.66507, 1.0], [0.70335, 0.98565], [0.73684, 0.96651],
    [0.77512, 0.96172], [0.8134, 0.96172], [0.85167, 0.95694], [0.88517, 0.93301],
    [0.90431, 0.89474], [0.90431, 0.85646], [0.89952, 0.81818], [0.88995, 0.7799],
    [0.88995, 0.74163], [0.88517, 0.70335], [0.86603, 0.66507], [0.84689, 0.62679],
    [0.82297, 0.58852], [0.79904, 0.55502], [0.76077, 0.52632], [0.74641, 0.49282],
    [0.73684, 0.45455], [0.73684, 0.41627], [0.73684, 0.37799], [0.76555, 0.33971],
    [0.78469, 0.30622], [0.81818, 0.33971], [0.84211, 0.32057], [0.8756, 0.32536],
    [0.91388, 0.33014], [0.91866, 0.29665], [0.88038, 0.28708], [0.8756, 0.26316],
    [0.91388, 0.26316], [0.9378, 0.23923], [0.90431, 0.22967], [0.86603, 0.2201],
    [0.82775, 0.19139], [0.78947, 0.1866], [0.7512, 0.1866], [0.7177, 0.21053],
    [0.69378, 0.24402], [0.66507, 0.27273], [0.64115, 0.311], [0.61722, 0.31579],
    [0.58373, 0.2823], [0.54545, 0.25837], [0.50718, 0.24402], [0.50239, 0.21531],
    [0.52632, 0.19139], [0.56459, 0.1866], [0.57416, 0.15311], [0.61244, 0.13397],
    [0.63636, 0.10048], [0.61244, 0.08134], [0.65072, 0.057416], [0.66029, 0.023923],
    [0.62679, 0.033493], [0.58852, 0.057416], [0.55502, 0.047847], [0.58373, 0.014354],
    [0.55981, 0.0], [0.52153, 0.019139], [0.48325, 0.038278], [0.44498, 0.057416],
    [0.4067, 0.062201], [0.36842, 0.066986], [0.33014, 0.07177], [0.29187, 0.08134],
    [0.25359, 0.095694], [0.21531, 0.11005], [0.17703, 0.11005], [0.13876, 0.1244],
    [0.11005, 0.14833], [0.086124, 0.1866], [0.07177, 0.22488], [0.066986, 0.26316],
    [0.062201, 0.30144], [0.028708, 0.33971], [0.0095694, 0.37799], [0.0, 0.41627],
    [0.0047847, 0.45455], [0.019139, 0.49282],
];

/// The points that the Fourier transform sees: the corners, and points between them.
pub(crate) fn points() -> Vec<Point> {
    plane::subdivide(&CORNERS, LONGEST_SEGMENT)
}

/// The row of coefficients of an order M: 4 (2M + 1) columns, see [`fourier`].
pub(crate) fn coefficients(order: usize) -> Vec<f32> {
    fourier::coefficients(&points(), order)
}

/// The Fourier curve of an order M.
pub(crate) fn curve(order: usize) -> Curve {
    Curve::new(&coefficients(order)).unwrap_or_else(|e| unreachable!("a row of its own order: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn off_the_outline(order: usize) -> f64 {
        let points = points();
        let near = |p: &Point| points.iter().map(|q| (p[0] - q[0]).hypot(p[1] - q[1])).fold(f64::INFINITY, f64::min);
        curve(order).trace(400).iter().map(near).sum::<f64>() / 400.0
    }

    #[test]
    fn more_terms_follow_the_outline_in_greater_detail() {
        let off: Vec<f64> = [1, 2, 5, 12, 30].map(off_the_outline).to_vec();
        assert!(off.is_sorted_by(|a, b| a > b), "{off:?}");
        assert!(off[0] > 0.03 && off[4] < 0.01, "{off:?}");
    }

    #[test]
    fn the_polygon_is_the_papers() {
        assert!(CORNERS.iter().flatten().all(|v| (0.0..=1.0).contains(v)));
        let next = CORNERS.iter().cycle().skip(1);
        let area: f64 = CORNERS.iter().zip(next).map(|(p, q)| 0.5 * (p[0] * q[1] - p[1] * q[0])).sum();
        assert!((area + 0.537_360_857_650_5).abs() < 1e-12, "{area}");
        // Middles of the first two sides, as in the paper's list.
        let points = points();
        assert!((points[1][0] - 0.038_277_5).abs() < 1e-12 && (points[3][1] - 0.557_415).abs() < 1e-12);
    }
}
