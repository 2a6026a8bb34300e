//! Metrics: numbers that say how close samples are to data. Plain vectors in, plain numbers out.

pub mod correlation;
