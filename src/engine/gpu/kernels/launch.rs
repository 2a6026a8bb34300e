//! What a dispatch gets as immediates: a plain struct per kernel, the mirror of `struct Launch` in its shader. That
//! names, offsets and sizes agree is checked by reflection in the tests of [`super::shader`].
//!
//! Kernels that run per tile begin with [`TileJob`], Adam begins with [`Update`]; these parts are filled in at each
//! replay, everything else when the program is recorded. Buffers of the arena are given by their first row.

use bytemuck::{Pod, Zeroable};

/// Most bytes of immediates a kernel may use: what every Vulkan device has.
pub(crate) const MAX_BYTES: usize = 128;

/// In place of a row, an offset or a copy: there is none, or nobody asks for it. See `shaders/shared/none.wgsl`.
pub(crate) const NONE: u32 = u32::MAX;

/// Most columns that `shaders/reflect_few.wgsl` has room for.
pub(crate) const FEW_COLUMNS: u32 = 32;

/// Name, offset and size of a field.
#[cfg(test)]
pub(crate) type Field = (&'static str, usize, usize);

/// A struct that a shader reads as immediates.
pub(crate) trait Launch: Pod {
    /// Its fields in order.
    #[cfg(test)]
    const FIELDS: &'static [Field];
}

macro_rules! launches {
    ($($(#[$doc:meta])* $name:ident { $($(#[$note:meta])* $field:ident: $type:ty,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, Pod, Zeroable)]
            #[repr(C)]
            pub(crate) struct $name {
                $($(#[$note])* pub(crate) $field: $type,)*
            }

            impl Launch for $name {
                #[cfg(test)]
                const FIELDS: &'static [Field] =
                    &[$((stringify!($field), std::mem::offset_of!($name, $field), size_of::<$type>()),)*];
            }
        )*
    };
}

launches! {
    /// What changes from tile to tile and from step to step; see `shaders/shared/tile.wgsl`.
    TileJob {
        rows: u32,
        quads: u32,
        stride: u32,
        first: u32,
        slice: u32,
        slices: u32,
        resident: u32,
        seed_lo: u32,
        seed_hi: u32,
        step: u32,
        start_lo: u32,
        start_hi: u32,
        noise: f32,
        inverse_batch: f32,
        loss_cell: u32,
        group_rows: u32,
    }
    /// What changes from update to update; see `shaders/adam.wgsl` and [`crate::optim::AdamStep`].
    Update {
        rate: f32,
        root: f32,
        beta1: f32,
        beta2: f32,
        eps: f32,
        l2: f32,
        grad_clamp: f32,
        clip_norm: f32,
        shrink: f32,
        follow: f32,
    }
    /// `shaders/gather.wgsl`
    Gather {
        tile: TileJob,
        to: u32,
        columns: u32,
        conditions: u32,
    }
    /// `shaders/normal.wgsl`
    Normal {
        tile: TileJob,
        to: u32,
        columns: u32,
        stream: u32,
        deviation: f32,
    }
    /// `shaders/fill.wgsl`
    Fill {
        tile: TileJob,
        to: u32,
        value: f32,
    }
    /// `shaders/mix.wgsl`
    Mix {
        tile: TileJob,
        input: u32,
        to: u32,
        columns: u32,
        panel: u32,
    }
    /// `shaders/networks.wgsl`
    Networks {
        tile: TileJob,
        x: u32,
        given: u32,
        st: u32,
        hidden0: u32,
        hidden1: u32,
        nodes: u32,
        first: u32,
    }
    /// `shaders/networks_packed.wgsl`
    NetworksPacked {
        tile: TileJob,
        x: u32,
        given: u32,
        st: u32,
        hidden0: u32,
        hidden1: u32,
        packs: u32,
        first: u32,
        kept: u32,
    }
    /// `shaders/couple.wgsl`
    Couple {
        tile: TileJob,
        x: u32,
        st: u32,
        to: u32,
        log_det: u32,
        columns: u32,
        chains: u32,
        add: u32,
    }
    /// `shaders/couple_mix.wgsl`
    CoupleMix {
        tile: TileJob,
        x: u32,
        st: u32,
        to: u32,
        log_det: u32,
        columns: u32,
        chains: u32,
        add: u32,
        mixed: u32,
        split: u32,
        panel0: u32,
        panel1: u32,
    }
    /// `shaders/couple_loss.wgsl`
    CoupleLoss {
        tile: TileJob,
        x: u32,
        st: u32,
        z: u32,
        log_det: u32,
        loss: u32,
        d_z: u32,
        d_log_det: u32,
        columns: u32,
        chains: u32,
        add: u32,
        d_x: u32,
        d_st: u32,
    }
    /// `shaders/uncouple.wgsl`
    Uncouple {
        tile: TileJob,
        input: u32,
        x: u32,
        st: u32,
        chains: u32,
    }
    /// `shaders/walk.wgsl`
    Walk {
        tile: TileJob,
        x: u32,
        given: u32,
        st: u32,
        hidden0: u32,
        hidden1: u32,
        nodes: u32,
        walk: u32,
        count: u32,
        chains: u32,
    }
    /// `shaders/loss.wgsl`
    Loss {
        tile: TileJob,
        z: u32,
        log_det: u32,
        loss: u32,
        d_z: u32,
        d_log_det: u32,
        columns: u32,
    }
    /// `shaders/squared_error.wgsl`
    SquaredError {
        tile: TileJob,
        input: u32,
        target_first: u32,
        loss: u32,
        d_input: u32,
        columns: u32,
        weight: f32,
    }
    /// `shaders/discrepancy.wgsl`
    Discrepancy {
        tile: TileJob,
        input: u32,
        target_first: u32,
        loss: u32,
        d_input: u32,
        columns: u32,
        wanted: u32,
        weight: f32,
    }
    /// `shaders/total_loss.wgsl`
    TotalLoss {
        tile: TileJob,
        loss: u32,
    }
    /// `shaders/uncouple_backward.wgsl`
    UncoupleBackward {
        tile: TileJob,
        x: u32,
        st: u32,
        d_x: u32,
        d_input: u32,
        d_st: u32,
        chains: u32,
    }
    /// `shaders/couple_backward.wgsl`
    CoupleBackward {
        tile: TileJob,
        x: u32,
        st: u32,
        d_to: u32,
        d_log_det: u32,
        d_x: u32,
        d_st: u32,
        chains: u32,
    }
    /// `shaders/between_backward.wgsl`
    BetweenBackward {
        tile: TileJob,
        slots: u32,
        lists: u32,
        d_mixed: u32,
        d_to: u32,
        split: u32,
        panel0: u32,
        panel1: u32,
        columns: u32,
        x: u32,
        st: u32,
        d_log_det: u32,
        d_x: u32,
        d_st: u32,
        chains: u32,
    }
    /// `shaders/networks_backward.wgsl`
    NetworksBackward {
        tile: TileJob,
        hidden0: u32,
        hidden1: u32,
        d_st: u32,
        d_hidden0: u32,
        d_hidden1: u32,
        slots: u32,
        nodes: u32,
        first: u32,
    }
    /// `shaders/networks_packed_backward.wgsl`
    NetworksPackedBackward {
        tile: TileJob,
        hidden0: u32,
        hidden1: u32,
        d_st: u32,
        d_hidden0: u32,
        d_hidden1: u32,
        slots: u32,
        packs: u32,
        first: u32,
    }
    /// `shaders/narrow_backward.wgsl`
    NarrowBackward {
        tile: TileJob,
        x: u32,
        given: u32,
        d_st: u32,
        slots: u32,
        packs: u32,
        first: u32,
        length: u32,
        add: u32,
    }
    /// `shaders/weight_gradient.wgsl`
    WeightGradient {
        tile: TileJob,
        left0: u32,
        left1: u32,
        left2: u32,
        right0: u32,
        right1: u32,
        right2: u32,
        given: u32,
        jobs: u32,
        count: u32,
        first: u32,
        length: u32,
        add: u32,
    }
    /// `shaders/slot_sum.wgsl`
    SlotSum {
        tile: TileJob,
        slots: u32,
        d_x: u32,
        lists: u32,
    }
    /// `shaders/shared/reflections.wgsl`
    Reflections {
        mixes: u32,
        first: u32,
        derived: u32,
        room: u32,
        row: u32,
        rows: u32,
    }
    /// `shaders/reflect_reduce.wgsl`
    ReflectReduce {
        mixes: u32,
        first: u32,
        room: u32,
        slices: u32,
        length: u32,
    }
    /// `shaders/pack_weights.wgsl`
    PackWeights {
        count: u32,
        pitch: u32,
    }
    /// `shaders/gradient_norm.wgsl`
    GradientNorm {
        trained: u32,
        slices: u32,
        length: u32,
        sums: u32,
    }
    /// `shaders/clip.wgsl`
    Clip {
        update: Update,
        sums: u32,
    }
    /// `shaders/adam.wgsl`
    Adam {
        update: Update,
        trained: u32,
        slices: u32,
        length: u32,
        pitch: u32,
        clipped: u32,
    }
}
