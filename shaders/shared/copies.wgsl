// An element of the gradient. Needs the binding `partials`, `launch.slices`, `launch.length`.

// The sum of its copies, one after the other from the first on. Eight are loaded before the first of them is needed: a
// load that the next waits for takes as long as eight.
fn sum_of_copies(first: u32) -> f32 {
    let length = launch.length;
    var sum = 0.0;
    var at = first;
    for (var n = launch.slices / 8u; n > 0u; n--) {
        let a = partials[at];
        let b = partials[at + length];
        let c = partials[at + 2u * length];
        let d = partials[at + 3u * length];
        let e = partials[at + 4u * length];
        let f = partials[at + 5u * length];
        let g = partials[at + 6u * length];
        let h = partials[at + 7u * length];
        sum = sum + a + b + c + d + e + f + g + h;
        at += 8u * length;
    }
    for (var n = launch.slices % 8u; n > 0u; n--) {
        sum += partials[at];
        at += length;
    }
    return sum;
}
