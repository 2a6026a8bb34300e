// The bins of a monotone rational-quadratic spline, of one column of one quad of samples. Parameters are the sums of
// those in the column's chain: K widths and K heights before a softmax, K - 1 slopes before a softplus. Needs the
// binding `arena`, `launch.tile`, `chain.wgsl`, `elementary.wgsl`.
//
// The samples search their bins side by side, bin by bin, and take along what belongs to the last one that begins
// before them. Parameters are summed, and exponentials computed, once more in each of the two or three passes over a
// side's bins: an array indexed by a loop would leave the registers.

override BINS: u32 = 8u;
override HALF_WIDTH: f32 = 5.0;   // the box is [-HALF_WIDTH, HALF_WIDTH]
override LEAST: f32 = 0.01;       // smallest width and height of a bin
override REST: f32 = 9.92;        // what is left of the box for the softmax
override MIN_SLOPE: f32 = 0.001;  // smallest slope at a knot
override SHIFT: f32 = 0.54074186; // makes the slope of a parameter of 0 equal to 1

// A parameter of the column.
fn parameter(chain: Chain, st: u32, number: u32) -> vec4<f32> {
    let stride = launch.tile.stride;
    var sum = vec4<f32>();
    for (var i = 0u; i < chain.count; i++) {
        let link = link_at(chain.links + i * LINK_WORDS);
        sum += arena[st + (link.first + number * link.step) * stride];
    }
    return sum;
}

// The bins along one side.
struct Side {
    chain: Chain,
    st: u32,
    first: u32, // number of the first parameter
    most: vec4<f32>,
    by_sum: vec4<f32>, // one over the sum of exponentials
}

// In one pass: the sum is made smaller where a larger parameter comes. With a NaN among them everything is NaN.
fn side_at(chain: Chain, st: u32, first: u32) -> Side {
    var most = parameter(chain, st, first);
    var sum = vec4<f32>(1.0);
    for (var k = 1u; k < BINS; k++) {
        let a = parameter(chain, st, first + k);
        let e = exponential(-abs(a - most));
        let higher = a > most;
        sum = select(sum + e, fma(sum, e, vec4<f32>(1.0)), higher);
        most = select(most, a, higher);
    }
    return Side(chain, st, first, most, 1.0 / sum);
}

// The part of the softmax that bin `k` has.
fn share_at(side: Side, k: u32) -> vec4<f32> {
    return exponential(parameter(side.chain, side.st, side.first + k) - side.most) * side.by_sum;
}

fn size_of(share: vec4<f32>) -> vec4<f32> {
    return fma(vec4<f32>(REST), share, vec4<f32>(LEAST));
}

// The bin of each sample along one side.
struct Bin {
    number: vec4<u32>,
    start: vec4<f32>,
    share: vec4<f32>,
    before: vec4<f32>, // shares of all bins before it
}

// Steps from bin to bin.
struct Search {
    found: Bin,
    start: vec4<f32>, // where the next bin begins
    before: vec4<f32>,
}

fn search_from(share: vec4<f32>) -> Search {
    let start = vec4<f32>(-HALF_WIDTH);
    return Search(Bin(vec4<u32>(), start, share, vec4<f32>()), start + size_of(share), share);
}

// Goes on with bin `k`, to which the samples move that are `beyond` where it begins.
fn next_bin(s: Search, k: u32, share: vec4<f32>, beyond: vec4<bool>) -> Search {
    let found = Bin(
        select(s.found.number, vec4<u32>(k), beyond),
        select(s.found.start, s.start, beyond),
        select(s.found.share, share, beyond),
        select(s.found.before, s.before, beyond),
    );
    return Search(found, s.start + size_of(share), s.before + share);
}

// The bin that a value lies in; the last one ends nowhere.
fn bin_of(side: Side, value: vec4<f32>) -> Bin {
    var search = search_from(share_at(side, 0u));
    for (var k = 1u; k < BINS; k++) {
        search = next_bin(search, k, share_at(side, k), value >= search.start);
    }
    return search.found;
}

// The bin with that number.
fn bin_at(side: Side, number: vec4<u32>) -> Bin {
    var search = search_from(share_at(side, 0u));
    for (var k = 1u; k < BINS; k++) {
        search = next_bin(search, k, share_at(side, k), number >= vec4<u32>(k));
    }
    return search.found;
}

// A slope at a knot, and its derivative by the parameter.
struct Slope {
    value: vec4<f32>,
    derivative: vec4<f32>,
}

// `at_end`: at the end of the box, where it is 1.
fn slope_of(parameter: vec4<f32>, at_end: vec4<bool>) -> Slope {
    let u = parameter + SHIFT;
    let e = exponential(-abs(u));
    let one = 1.0 + e;
    let softplus = select(u, vec4<f32>(), u < vec4<f32>()) + natural_log(one);
    let sigmoid = select(e, vec4<f32>(1.0), u > vec4<f32>()) / one;
    return Slope(select(MIN_SLOPE + softplus, vec4<f32>(1.0), at_end), select(sigmoid, vec4<f32>(), at_end));
}

// Those at both ends of the bins.
struct Slopes {
    left: Slope,
    right: Slope,
}

fn slopes_at(chain: Chain, st: u32, number: vec4<u32>) -> Slopes {
    var left = vec4<f32>();
    var right = vec4<f32>();
    for (var knot = 1u; knot < BINS; knot++) {
        let a = parameter(chain, st, 2u * BINS + knot - 1u);
        left = select(left, a, number == vec4<u32>(knot));
        right = select(right, a, number == vec4<u32>(knot - 1u));
    }
    return Slopes(slope_of(left, number == vec4<u32>()), slope_of(right, number == vec4<u32>(BINS - 1u)));
}
