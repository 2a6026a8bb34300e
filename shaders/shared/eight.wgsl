// Eight outputs of one quad of samples at a time, in registers. Needs the binding `panels` and `relu.wgsl`.
//
// A panel holds the weights of eight outputs, input by input: those of input k are panels[at + 2 k] and the next. Where
// there are fewer outputs the rest is zero. Whoever makes the loop around `add_input`, inputs come in order, so the
// bits of a sum do not depend on it.

struct Eight {
    a: vec4<f32>,
    b: vec4<f32>,
    c: vec4<f32>,
    d: vec4<f32>,
    e: vec4<f32>,
    f: vec4<f32>,
    g: vec4<f32>,
    h: vec4<f32>,
}

fn zero_eight() -> Eight {
    let z = vec4<f32>();
    return Eight(z, z, z, z, z, z, z, z);
}

// The biases at the head of a panel.
fn biases(at: u32) -> Eight {
    let u = panels[at];
    let v = panels[at + 1u];
    return Eight(
        vec4<f32>(u.x),
        vec4<f32>(u.y),
        vec4<f32>(u.z),
        vec4<f32>(u.w),
        vec4<f32>(v.x),
        vec4<f32>(v.y),
        vec4<f32>(v.z),
        vec4<f32>(v.w),
    );
}

fn add_input(sum: ptr<function, Eight>, at: u32, x: vec4<f32>) {
    let u = panels[at];
    let v = panels[at + 1u];
    (*sum).a = fma(vec4<f32>(u.x), x, (*sum).a);
    (*sum).b = fma(vec4<f32>(u.y), x, (*sum).b);
    (*sum).c = fma(vec4<f32>(u.z), x, (*sum).c);
    (*sum).d = fma(vec4<f32>(u.w), x, (*sum).d);
    (*sum).e = fma(vec4<f32>(v.x), x, (*sum).e);
    (*sum).f = fma(vec4<f32>(v.y), x, (*sum).f);
    (*sum).g = fma(vec4<f32>(v.z), x, (*sum).g);
    (*sum).h = fma(vec4<f32>(v.w), x, (*sum).h);
}

fn rectify_eight(s: Eight) -> Eight {
    return Eight(
        rectify(s.a),
        rectify(s.b),
        rectify(s.c),
        rectify(s.d),
        rectify(s.e),
        rectify(s.f),
        rectify(s.g),
        rectify(s.h),
    );
}
