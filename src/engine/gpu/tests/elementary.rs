//! The elementary functions of the shaders against f64, and Philox against the host.

use rand::Rng;

use super::*;

/// Runs a WGSL function `fn f(v: vec4<u32>) -> vec4<u32>` on every input.
fn evaluate(device: &Device, shared: &[&str], function: &str, inputs: &[[u32; 4]]) -> Vec<[u32; 4]> {
    let text = format!(
        "@group(0) @binding(0) var<storage, read_write> values: array<vec4<u32>>;
         {function}
         @compute @workgroup_size(64)
         fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
             if (id.x < arrayLength(&values)) {{ values[id.x] = f(values[id.x]); }}
         }}
         {}",
        shared.join("\n")
    );
    let gpu = &device.device;
    let module = gpu.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: None,
        source: wgpu::ShaderSource::Wgsl(text.into()),
    });
    let pipeline = gpu.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: None,
        layout: None,
        module: &module,
        entry_point: Some("main"),
        compilation_options: Default::default(),
        cache: None,
    });
    let bytes = size_of_val(inputs) as u64;
    let make = |usage| {
        gpu.create_buffer(&wgpu::BufferDescriptor { label: None, size: bytes, usage, mapped_at_creation: false })
    };
    use wgpu::BufferUsages as Usage;
    let values = make(Usage::STORAGE | Usage::COPY_DST | Usage::COPY_SRC);
    let staging = make(Usage::MAP_READ | Usage::COPY_DST);
    device.queue.write_buffer(&values, 0, bytemuck::cast_slice(inputs));
    let group = gpu.create_bind_group(&wgpu::BindGroupDescriptor {
        label: None,
        layout: &pipeline.get_bind_group_layout(0),
        entries: &[wgpu::BindGroupEntry { binding: 0, resource: values.as_entire_binding() }],
    });
    let mut encoder = gpu.create_command_encoder(&Default::default());
    {
        let mut pass = encoder.begin_compute_pass(&Default::default());
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, &group, &[]);
        pass.dispatch_workgroups((inputs.len() as u32).div_ceil(64), 1, 1);
    }
    encoder.copy_buffer_to_buffer(&values, 0, &staging, 0, bytes);
    device.queue.submit([encoder.finish()]);
    staging.map_async(wgpu::MapMode::Read, .., |result| result.unwrap());
    device.wait(None).unwrap();
    bytemuck::pod_collect_to_vec(&staging.get_mapped_range(..).unwrap())
}

const ELEMENTARY: &str = include_str!("../../../../shaders/shared/elementary.wgsl");
const PHILOX: &str = include_str!("../../../../shaders/shared/philox.wgsl");

/// Applies `expression` of `v: vec4<f32>` to floats.
fn floats(device: &Device, expression: &str, inputs: &[f32]) -> Vec<f32> {
    let function = format!(
        "fn f(bits: vec4<u32>) -> vec4<u32> {{ let v = bitcast<vec4<f32>>(bits); return bitcast<vec4<u32>>({expression}); }}"
    );
    let words: Vec<[u32; 4]> = inputs.chunks_exact(4).map(|q| [0, 1, 2, 3].map(|i| q[i].to_bits())).collect();
    let out = evaluate(device, &[ELEMENTARY], &function, &words);
    out.concat().into_iter().map(f32::from_bits).collect()
}

/// Every result is within `ulp` units in the last place of `exact`, or within `absolute`.
fn assert_ulp(inputs: &[f32], got: &[f32], exact: impl Fn(f64) -> f64, ulp: f64, absolute: f64, what: &str) {
    assert_eq!(inputs.len(), got.len());
    let mut worst = 0.0f64;
    for (&x, &y) in inputs.iter().zip(got) {
        let want = exact(x.into());
        let unit = 2f64.powi(want.abs().max(f64::from(f32::MIN_POSITIVE)).log2().floor() as i32 - 23);
        let error = (f64::from(y) - want).abs();
        assert!(error <= ulp * unit || error <= absolute, "{what}({x}) is {y}, not {want}: {} ULP", error / unit);
        if error > absolute {
            worst = worst.max(error / unit);
        }
    }
    println!("{what}: at most {worst:.2} ULP");
}

#[test]
fn arctangent() {
    let device = device();
    let mut inputs: Vec<f32> = (-40_000..40_000).map(|i| i as f32 * 1e-4).collect();
    inputs.extend((0..400).flat_map(|i| [1, -1].map(|sign| sign as f32 * 1.17f32.powi(i - 200))));
    let got = floats(&device, "arctangent(v)", &inputs);
    assert_ulp(&inputs, &got, f64::atan, 4.0, 1e-37, "atan");
    let got = floats(&device, "arctangent(v)", &[f32::INFINITY, f32::NEG_INFINITY, 0.0, f32::NAN]);
    assert_close("ends", &got[..3], &[f64::atan(f64::INFINITY), -f64::atan(f64::INFINITY), 0.0], within(1e-7));
    assert!(got[3].is_nan());
}

#[test]
fn exponential() {
    let device = device();
    let inputs: Vec<f32> = (-86_000..88_000).map(|i| i as f32 * 1.001e-3).collect();
    assert_ulp(&inputs, &floats(&device, "exponential(v)", &inputs), f64::exp, 3.0, 0.0, "exp");
    let got = floats(&device, "exponential(v)", &[200.0, -200.0, 0.0, f32::NAN]);
    assert_eq!(got[..3], [f32::INFINITY, 0.0, 1.0]);
    assert!(got[3].is_nan());
}

#[test]
fn natural_logarithm() {
    let device = device();
    // All that Box-Muller asks for lies in [2^-25, 1].
    let mut inputs: Vec<f32> = (0..40_000).map(|i| (i as f32 * 419.0 + 0.5) / (1 << 24) as f32).collect();
    inputs.extend((0..1000).map(|i| 1.0 - i as f32 / (1 << 24) as f32));
    inputs.extend([2f32.powi(-25), 0.5, 0.25, std::f32::consts::FRAC_1_SQRT_2]);
    // And splines of larger numbers.
    inputs.extend((0..1200).map(|i| 1.15f32.powi(i - 600)));
    assert_ulp(&inputs, &floats(&device, "natural_log(v)", &inputs), f64::ln, 3.0, 0.0, "ln");
    let got = floats(&device, "natural_log(v)", &[f32::INFINITY, f32::NAN, -f32::NAN, 1.0]);
    assert_eq!((got[0], got[3]), (f32::INFINITY, 0.0));
    assert!(got[1].is_nan() && got[2].is_nan());
}

#[test]
fn turns() {
    let device = device();
    let inputs: Vec<f32> = (0..=40_003).map(|i| i as f32 / 40_003.0).collect();
    for (component, exact) in [("x", f64::cos as fn(f64) -> f64), ("y", f64::sin)] {
        let of = |c: &str| format!("cos_sin_turn(v.{c}).{component}");
        let expression = format!("vec4<f32>({}, {}, {}, {})", of("x"), of("y"), of("z"), of("w"));
        let got = floats(&device, &expression, &inputs);
        let exact = |f: f64| exact(std::f64::consts::TAU * f);
        assert_ulp(&inputs, &got, exact, 3.0, 1e-15, &format!("cos_sin_turn.{component}"));
    }
}

/// `rng.rs` has the published answers.
#[test]
fn philox_is_that_of_the_host() {
    let device = device();
    let mut rng = Counter::new(1, Stream::Data, 0, 0);
    for i in 0..4 {
        let [counter, key] = [0; 2].map(|_| [0; 4].map(|_: u32| if i == 0 { u32::MAX } else { rng.next_u32() }));
        let function =
            format!("fn f(v: vec4<u32>) -> vec4<u32> {{ return philox(v, vec2<u32>({}u, {}u)); }}", key[0], key[1]);
        let expected = crate::rng::philox4x32_10(counter, [key[0], key[1]]);
        assert_eq!(evaluate(&device, &[ELEMENTARY, PHILOX], &function, &[counter]), [expected]);
    }
}

#[test]
fn wide_arithmetic() {
    let device = device();
    let function = "fn f(v: vec4<u32>) -> vec4<u32> {
        return vec4<u32>(group_number(v.xy, v.z, v.w), add_wide(v.xy, v.z));
    }";
    let mut inputs =
        vec![[u32::MAX, 5, 1 << 14, 4], [u32::MAX, 0, 1, 1], [0, 0, 1, 0], [u32::MAX, 1, u32::MAX, u32::MAX]];
    let mut rng = Counter::new(2, Stream::Data, 0, 0);
    inputs.extend((0..500).map(|_| [0; 4].map(|_: u32| rng.next_u32())));
    for (&[x, y, z, w], got) in inputs.iter().zip(evaluate(&device, &[ELEMENTARY, PHILOX], function, &inputs)) {
        let number = u64::from(x) | u64::from(y) << 32;
        let group = number.wrapping_mul(z.into()).wrapping_add(w.into());
        let sum = number.wrapping_add(z.into());
        assert_eq!(got, [group as u32, (group >> 32) as u32, sum as u32, (sum >> 32) as u32]);
    }
}
