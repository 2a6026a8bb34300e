// Trained mixings as the kernels of reflections see them. Needs the binding `tables`.
//
// U (N, N) are the vectors u_i by rows, R (N, N) has half of u_i . u_i on the diagonal and u_i . u_j above it. Then Q =
// H_1 H_2 ... H_N = I - U^T A with A = R^-1 U (C. Puglisi, "Modification of the Householder method based on the compact
// WY representation", 1992). The backward pass needs C = R^-T U, too; rows of A and C are rotated 2 u_i / |u_i|^2. A
// vector of zeros reflects nothing: its rows of A and C are zero.
struct Launch {
    mixes: u32,   // where the mixings begin in the tables
    first: u32,   // number of the first mixing of this dispatch
    derived: u32, // where in the weights the first Q of all begins
    room: u32,    // where in scratch the room of this dispatch begins: two matrices per mixing
    row: u32,     // first row of tiles of this dispatch
    rows: u32,    // how many; solving: in the order in which they are solved
}
var<immediate> launch: Launch;

struct Reflections {
    n: u32,
    q: u32,       // where Q begins in the weights
    vectors: u32, // where U begins in the weights
    a: u32,       // where A begins in scratch
    c: u32,
    near: u32,    // the two matrices of room in scratch
    far: u32,
}

// Number `y` of this dispatch.
fn reflections_of(y: u32) -> Reflections {
    let mix = launch.mixes + (launch.first + y) * MIXING_WORDS;
    let n = mixing_dim(mix);
    let q = mixing_q(mix);
    // A and C stay from the forward to the backward pass: two matrices for each Q.
    let a = 2u * (q - launch.derived);
    let near = launch.room + y * 2u * n * n;
    return Reflections(n, q, mixing_vectors(mix), a, a + n * n, near, near + n * n);
}
