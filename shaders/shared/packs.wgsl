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

// What a group of threads works on: eight outputs or inputs of one node; mirrors `packs::ITEM`.
const ITEM_WORDS: u32 = 3u;

struct Item {
    node: u32,  // where the node's words begin
    first: u32, // number of the first output or input
    row: u32,   // the node's first row in `act`
}

fn item_at(list: u32, number: u32) -> Item {
    let at = list + number * ITEM_WORDS;
    return Item(tables[at], tables[at + 1u], tables[at + 2u]);
}

// A pack; mirrors `packs::PACK`.
const PACK_WORDS: u32 = 6u;

struct Pack {
    hidden: u32,       // where its items begin: hidden outputs
    hidden_count: u32, // no more than there are groups of threads
    outs: u32,         // outputs, four per item
    outs_count: u32,
    upper: u32,        // columns read
    upper_count: u32,
}

fn pack_at(at: u32) -> Pack {
    return Pack(tables[at], tables[at + 1u], tables[at + 2u], tables[at + 3u], tables[at + 4u], tables[at + 5u]);
}
