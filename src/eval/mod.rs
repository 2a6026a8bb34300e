//! Metrics: numbers that say how close samples are to data. Plain vectors in, plain numbers out.

pub mod correlation;
pub mod fit;
pub mod hausdorff;
mod nearest;
pub mod polygon;
