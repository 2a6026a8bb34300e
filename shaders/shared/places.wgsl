// The copies of a weight in the panels. Needs the bindings `panels` (scalars) and `places`.

// In place of a place: there is no copy.
const NO_PLACE: u32 = 0xffffffffu;

fn write_panels(i: u32, value: f32) {
    let place = places[i];
    if (place.x != NO_PLACE) { panels[place.x] = value; }
    if (place.y != NO_PLACE) { panels[place.y] = value; }
}
