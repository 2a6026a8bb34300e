// Packs of networks, and their activations in the memory of the workgroup: row f, quad q at act[f * QUADS + q]. Needs
// the binding `tables`.
//
// A thread keeps eight outputs of one quad in registers until nobody reads the inputs any more, so outputs take the
// place of the inputs and one buffer is enough. Threads side by side read quads side by side, and weights that several
// threads read at once are the same: neither meets a bank twice.

override QUADS: u32 = 16u;    // quads of samples of a workgroup
override THREADS: u32 = 256u; // threads of a workgroup: QUADS times groups
// QUADS for each hidden row of the largest pack. Not a product: naga forgets overrides after a size without a name.
override SIZE: u32 = 1024u;
var<workgroup> act: array<vec4<f32>, SIZE>;
