//! The kernels as the host knows them: their text and variants, what each is told, and what lies where in the arrays
//! that they share. Names no device.

pub(crate) mod extras;
pub(crate) mod launch;
pub(crate) mod records;
pub(crate) mod shader;
pub(crate) mod transform;
