// The copies of a weight in the panels. Needs the bindings `panels` (scalars) and `packed_offsets`, `none.wgsl`.

fn write_panels(i: u32, value: f32) {
    let at = packed_offsets[i];
    if (at.x != NONE) { panels[at.x] = value; }
    if (at.y != NONE) { panels[at.y] = value; }
}
