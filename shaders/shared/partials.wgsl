// Gradients of weights in their copies. Needs the binding `partials`, `none.wgsl`.

fn load(at: u32) -> f32 {
    if (at == NONE) { return 0.0; }
    return partials[at];
}

fn save(at: u32, value: f32) {
    if (at != NONE) { partials[at] = value; }
}
