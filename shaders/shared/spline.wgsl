// A column of one quad of samples through its monotone rational-quadratic spline (Durkan, Bekasov, Murray,
// Papamakarios 2019); see `chain.wgsl`. Needs what `bins.wgsl` needs.

// Within 0 and `most`. Not `clamp`, which may turn NaN into a bound.
fn bounded(v: vec4<f32>, most: vec4<f32>) -> vec4<f32> {
    let low = select(v, vec4<f32>(), v < vec4<f32>());
    return select(low, most, low > most);
}

// Samples whose values lie in the box; all others go through as they are, NaN too.
fn in_box(v: vec4<f32>) -> vec4<bool> {
    return abs(v) < vec4<f32>(HALF_WIDTH);
}

// Everything that a column's map at the samples' places is made of.
struct Place {
    widths: Side,
    heights: Side,
    width: Bin,
    height: Bin,
    slopes: Slopes,
}

// Of a value of x.
fn place_of(chain: Chain, st: u32, x: vec4<f32>) -> Place {
    let widths = side_at(chain, st, 0u);
    let width = bin_of(widths, x);
    let heights = side_at(chain, st, BINS);
    let height = bin_at(heights, width.number);
    return Place(widths, heights, width, height, slopes_at(chain, st, width.number));
}

// A sample in its bin.
struct Point {
    w: vec4<f32>,
    h: vec4<f32>,
    t: vec4<f32>,         // place in the bin, 0 to 1
    tt: vec4<f32>,        // t (1 - t)
    s: vec4<f32>,         // height over width
    q: vec4<f32>,         // d0 + d1 - 2 s
    den: vec4<f32>,       // s + q t (1 - t)
    num: vec4<f32>,       // s t^2 + d0 t (1 - t)
    slope_num: vec4<f32>, // d1 t^2 + 2 s t (1 - t) + d0 (1 - t)^2
}

fn point_of(place: Place, x: vec4<f32>) -> Point {
    let w = size_of(place.width.share);
    let h = size_of(place.height.share);
    let d0 = place.slopes.left.value;
    let d1 = place.slopes.right.value;
    let t = bounded((x - place.width.start) / w, vec4<f32>(1.0));
    let rest = 1.0 - t;
    let tt = t * rest;
    let s = h / w;
    let q = d0 + d1 - 2.0 * s;
    let slope_num = fma(d1, t * t, fma(2.0 * s, tt, d0 * rest * rest));
    return Point(w, h, t, tt, s, q, fma(q, tt, s), fma(s, t * t, d0 * tt), slope_num);
}

fn couple_column(chain: Chain, start: Through, st: u32) -> Through {
    if (chain.count == 0u) { return start; }
    let x = start.v;
    let place = place_of(chain, st, x);
    let p = point_of(place, x);
    let y = fma(p.h, p.num / p.den, place.height.start);
    let ratio = p.s / p.den;
    let log_slope = natural_log(ratio * ratio * p.slope_num);
    let inside = in_box(x);
    return Through(select(x, y, inside), start.log_det + select(vec4<f32>(), log_slope, inside));
}

fn uncouple_column(chain: Chain, value: vec4<f32>, st: u32) -> vec4<f32> {
    if (chain.count == 0u) { return value; }
    let heights = side_at(chain, st, BINS);
    let height = bin_of(heights, value);
    let width = bin_at(side_at(chain, st, 0u), height.number);
    let slopes = slopes_at(chain, st, height.number);
    // The root of a t^2 + b t + c in the form that does not cancel.
    let h = size_of(height.share);
    let w = size_of(width.share);
    let d0 = slopes.left.value;
    let s = h / w;
    let v = bounded(value - height.start, h);
    let q = d0 + slopes.right.value - 2.0 * s;
    let a = fma(v, q, h * (s - d0));
    let b = fma(-v, q, h * d0);
    let c = -s * v;
    let square = fma(b, b, -4.0 * a * c);
    let root = sqrt(select(square, vec4<f32>(), square < vec4<f32>()));
    let t = bounded(2.0 * c / (-b - root), vec4<f32>(1.0));
    return select(value, fma(t, w, width.start), in_box(value));
}

// The deepest node of a column comes last on the walk; then all its parameters are there.
fn uncouple_node(chain: Chain, own: Link, value: vec4<f32>, st: u32) -> vec4<f32> {
    if (link_at(chain.links).first != own.first) { return value; }
    return uncouple_column(chain, value, st);
}

// Gradients of the parameters of one side, to the rows from arena index `to` on, from those of where a sample's bin
// begins, which all bins before it move, and of its size.
fn side_back(side: Side, bin: Bin, start: vec4<f32>, size: vec4<f32>, to: u32) {
    // The gradients of the shares, weighted by them.
    let mean = fma(start, bin.before, size * bin.share);
    for (var k = 0u; k < BINS; k++) {
        let number = vec4<u32>(k);
        let moves = select(vec4<f32>(), start, number < bin.number);
        let own = select(moves, size, number == bin.number);
        arena[to + k * launch.tile.stride] = REST * share_at(side, k) * (own - mean);
    }
}

fn couple_back(chain: Chain, x: vec4<f32>, g: vec4<f32>, d_log_det: vec4<f32>, st: u32, d_st: u32) -> vec4<f32> {
    if (chain.count == 0u) { return g; }
    let place = place_of(chain, st, x);
    let p = point_of(place, x);
    let d0 = place.slopes.left.value;
    let d1 = place.slopes.right.value;
    let rest = 1.0 - p.t;
    let turn = 1.0 - 2.0 * p.t;
    let by_den = 1.0 / p.den;
    let ratio = p.num * by_den;
    // y = start + h num / den, by t, s and the slopes.
    let of_y = g * p.h * by_den;
    let y_t = of_y * p.s * p.slope_num * by_den;
    let y_s = of_y * fma(-ratio, 1.0 - 2.0 * p.tt, p.t * p.t);
    let y_0 = of_y * p.tt * (1.0 - ratio);
    let y_1 = -of_y * p.tt * ratio;
    // log-derivative = 2 ln s + ln slope_num - 2 ln den
    let l = d_log_det / p.slope_num;
    let m = 2.0 * d_log_det * by_den;
    let l_t = fma(2.0 * l, fma(d1, p.t, fma(p.s, turn, -d0 * rest)), -m * p.q * turn);
    let l_s = 2.0 * d_log_det / p.s + 2.0 * l * p.tt - m * (1.0 - 2.0 * p.tt);
    let l_0 = fma(l, rest * rest, -m * p.tt);
    let l_1 = fma(l, p.t * p.t, -m * p.tt);
    // t = (x - start) / w, s = h / w
    let by_width = 1.0 / p.w;
    let d_x = (y_t + l_t) * by_width;
    let d_s = (y_s + l_s) * by_width;
    let inside = in_box(x);
    let none = vec4<f32>();
    let d_width = select(none, -fma(d_x, p.t, d_s * p.s), inside);
    let d_height = select(none, fma(g, ratio, d_s), inside);
    let stride = launch.tile.stride;
    let to = d_st + chain.sum * stride;
    side_back(place.widths, place.width, select(none, -d_x, inside), d_width, to);
    side_back(place.heights, place.height, select(none, g, inside), d_height, to + BINS * stride);
    let left = select(none, (y_0 + l_0) * place.slopes.left.derivative, inside);
    let right = select(none, (y_1 + l_1) * place.slopes.right.derivative, inside);
    let number = place.width.number;
    for (var knot = 1u; knot < BINS; knot++) {
        let of_left = select(none, left, number == vec4<u32>(knot));
        let of_right = select(none, right, number == vec4<u32>(knot - 1u));
        arena[to + (2u * BINS + knot - 1u) * stride] = of_left + of_right;
    }
    return select(g, d_x, inside);
}
