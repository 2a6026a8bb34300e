// Four outputs of one quad of samples at a time, in registers: half a panel (`eight.wgsl`). Needs the binding `panels`.

struct Four {
    a: vec4<f32>,
    b: vec4<f32>,
    c: vec4<f32>,
    d: vec4<f32>,
}

fn zero_four() -> Four {
    let z = vec4<f32>();
    return Four(z, z, z, z);
}

// The biases at the head of half a panel.
fn biases_four(at: u32) -> Four {
    let u = panels[at];
    return Four(vec4<f32>(u.x), vec4<f32>(u.y), vec4<f32>(u.z), vec4<f32>(u.w));
}

fn add_input_four(sum: ptr<function, Four>, at: u32, x: vec4<f32>) {
    let u = panels[at];
    (*sum).a = fma(vec4<f32>(u.x), x, (*sum).a);
    (*sum).b = fma(vec4<f32>(u.y), x, (*sum).b);
    (*sum).c = fma(vec4<f32>(u.z), x, (*sum).c);
    (*sum).d = fma(vec4<f32>(u.w), x, (*sum).d);
}
