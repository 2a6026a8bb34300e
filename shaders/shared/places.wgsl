// The copies of a weight in the panels. Needs the bindings `panels` (scalars) and `places`, `none.wgsl`.

fn write_panels(i: u32, value: f32) {
    let place = places[i];
    if (place.x != NONE) { panels[place.x] = value; }
    if (place.y != NONE) { panels[place.y] = value; }
}
