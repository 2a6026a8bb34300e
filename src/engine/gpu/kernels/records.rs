//! Records of the tables: each is defined here once, as a struct of the host, and what shaders read it with follows
//! from that.
//!
//! Tables are one array of words, in which records of several kinds lie, so that they take one binding. A shader knows
//! a record by its place, the number of its first word. To read field `hidden` of a `Node` it calls `node_hidden(at)`;
//! if the field is an array, as in `panels_forward(at, number)`, the function gives one of its words; if it is made of
//! records itself, as in `node_panels(at, number)`, the place of one. `NODE_WORDS` leads from one record of a list to
//! the next. A small record that is read at once, as by `chain_at(at)`, comes with a struct. [`accessors`] writes all
//! of these, as far as a shader has use for them.
//!
//! Large records are not read at once: it would be the compiler's task then to find out which words a kernel needs, and
//! where. With a function for each word, shaders say so themselves.

use bytemuck::{Pod, Zeroable};

/// A record of words.
pub(crate) trait Record: Pod {
    /// Its number of words.
    const WORDS: usize = size_of::<Self>() / size_of::<u32>();

    /// Appends it to the tables; returns where it begins.
    fn push(self, words: &mut Vec<u32>) -> u32 {
        let at = words.len() as u32;
        words.extend_from_slice(bytemuck::cast_slice(&[self]));
        at
    }
}

/// What a field may be.
trait FieldType {
    /// Words from one element to the next, if there are several.
    const STEP: Option<usize>;
    /// Whether it is made of records.
    const NESTED: bool;
}

impl FieldType for u32 {
    const STEP: Option<usize> = None;
    const NESTED: bool = false;
}

impl<const N: usize> FieldType for [u32; N] {
    const STEP: Option<usize> = Some(1);
    const NESTED: bool = false;
}

impl<R: Record> FieldType for R {
    const STEP: Option<usize> = None;
    const NESTED: bool = true;
}

impl<R: Record, const N: usize> FieldType for [R; N] {
    const STEP: Option<usize> = Some(R::WORDS);
    const NESTED: bool = true;
}

/// A field as shaders read it.
struct Field {
    name: &'static str,
    /// Its first word.
    first: usize,
    /// As [`FieldType::STEP`].
    step: Option<usize>,
    /// As [`FieldType::NESTED`].
    nested: bool,
    /// Its words in a record of these words.
    #[cfg(test)]
    words: fn(&[u32]) -> Vec<u32>,
}

/// A record as shaders read it.
struct Layout {
    /// Name of the struct.
    name: &'static str,
    /// What names of functions begin with.
    prefix: &'static str,
    words: usize,
    fields: &'static [Field],
}

macro_rules! records {
    ($($(#[$doc:meta])* $name:ident $prefix:literal { $($(#[$note:meta])* $field:ident: $type:ty,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
            #[repr(C)]
            pub(crate) struct $name {
                $($(#[$note])* pub(crate) $field: $type,)*
            }

            impl Record for $name {}
        )*

        /// All records.
        const ALL: &[Layout] = &[$(Layout {
            name: stringify!($name),
            prefix: $prefix,
            words: $name::WORDS,
            fields: &[$(Field {
                name: stringify!($field),
                first: std::mem::offset_of!($name, $field) / size_of::<u32>(),
                step: <$type>::STEP,
                nested: <$type>::NESTED,
                #[cfg(test)]
                words: |words| bytemuck::cast_slice(&[read::<$name>(words, 0, 1)[0].$field]).to_vec(),
            },)*],
        },)*];
    };
}

records! {
    /// A node of a stage; see [`crate::plan::Node`].
    Node "node" {
        /// First column read.
        upper_first: u32,
        /// Columns read.
        upper: u32,
        /// Conditions read after them: none or all.
        given: u32,
        /// First column transformed.
        lower_first: u32,
        /// Columns transformed.
        lower: u32,
        /// Hidden width.
        hidden: u32,
        /// Outputs of a network.
        outputs: u32,
        /// First row in the stage's `st`.
        st: u32,
        /// The same in the gradient of `st`, where parameters may be summed.
        sum: u32,
        /// First row in each of the stage's hidden buffers.
        hidden_first: u32,
        /// First row in the stage's slots.
        slot: u32,
        /// Number of its first counter of dropout; see `shaders/shared/dropout.wgsl`.
        dropout: u32,
        /// Of each of up to two networks.
        panels: [Panels; 2],
        /// Of each of up to two networks.
        offsets: [Offsets; 2],
    }
    /// Where the panels of a network's three layers begin.
    Panels "panels" {
        /// Biases, then the weights of each input, by eight outputs.
        forward: [u32; 3],
        /// Transposed: the weights of each output, by eight inputs.
        back: [u32; 3],
    }
    /// Where the weights of a network's three layers are among the parameters.
    Offsets "offsets" {
        weight: [u32; 3],
        bias: [u32; 3],
    }
    /// What becomes of a column in a stage.
    Chain "chain" {
        /// Where its links begin, that of the deepest node first.
        links: u32,
        /// Their number.
        count: u32,
        /// Where parameters are summed, the row of the gradient of the first one.
        sum: u32,
    }
    /// What a node has for a column.
    Link "link" {
        /// Row of the first parameter.
        first: u32,
        /// Rows from one parameter to the next.
        step: u32,
    }
    /// Several records of one kind.
    List "list" {
        /// Where they begin.
        begin: u32,
        /// Their number.
        count: u32,
    }
    /// A stop of the inverse walk.
    Visit "visit" {
        /// Number of the node in the stage.
        node: u32,
    }
    /// What a node sends to a column.
    Slot "slot" {
        /// Its row in the stage's slots.
        row: u32,
    }
    /// A weight tile: the sum over samples of gradients of outputs times inputs.
    WeightTile "weight_tile" {
        /// Which pair of buffers.
        layer: u32,
        /// First row of the outputs' gradients within its buffer.
        left: u32,
        /// First row of the inputs within its buffer.
        right: u32,
        n_out: u32,
        n_in: u32,
        /// Where the weights are among the parameters.
        weight: u32,
        /// Where the biases are, if there are any.
        bias: u32,
        /// First output.
        output: u32,
        /// First input.
        input: u32,
        /// Inputs before the conditions.
        columns: u32,
    }
    /// A pack of networks: items for its hidden outputs, no more of them than there are groups of threads, for its
    /// outputs and for the columns that it reads.
    Pack "pack" {
        hidden: u32,
        hidden_count: u32,
        outs: u32,
        outs_count: u32,
        upper: u32,
        upper_count: u32,
    }
    /// What a group of threads works on: some outputs or inputs of one node.
    Item "item" {
        /// Where the node begins.
        node: u32,
        /// Number of the first output or input.
        first: u32,
        /// The node's first row in workgroup memory.
        row: u32,
    }
    /// A pack of narrow networks: its lists.
    NarrowPack "narrow_pack" {
        /// Hidden outputs, as [`Part`].
        hidden: List,
        /// Blocks of the middle layer, as [`WeightBlock`].
        middle: List,
        /// Blocks of the other layers.
        outer: List,
        /// Biases, as [`Part`].
        biases: List,
        /// Rows to fetch, as [`Source`].
        sources: List,
        /// Columns read, as [`Upper`].
        upper: List,
    }
    /// Up to four of the columns that a narrow node reads: where what its networks send them comes from and goes to.
    /// It has that itself, so that nobody needs to find a place, and then a node, before the first product.
    Upper "upper" {
        /// Row of the first in the stage's slots.
        slot: u32,
        /// Columns from the first to the node's last.
        count: u32,
        /// As in [`Place`].
        front: u32,
        /// Hidden width.
        hidden: u32,
        /// Where the half panels begin, of each of up to two networks.
        panels: [u32; 2],
    }
    /// Four outputs or hidden outputs of a narrow node, or one bias.
    Part "part" {
        /// Where the node's [`Place`] is.
        place: u32,
        /// Number of the first.
        first: u32,
    }
    /// A narrow node's rows in workgroup memory.
    Place "place" {
        /// Where the node begins.
        node: u32,
        front: u32,
        rear: u32,
        inputs: u32,
        outs: u32,
    }
    /// 4 x 4 weights of a layer of a narrow node.
    WeightBlock "weight_block" {
        /// Where the node's [`Place`] is.
        place: u32,
        layer: u32,
        /// First output.
        output: u32,
        /// First input.
        input: u32,
    }
    /// A row that a pack of narrow networks fetches.
    Source "source" {
        /// Its row in workgroup memory.
        to: u32,
        /// Of x, of the gradient of `st` or of the conditions: see the constants of `shaders/shared/narrow.wgsl`.
        kind: u32,
        /// Its number for the first network.
        row: u32,
        /// How much further it is for the second.
        step: u32,
    }
    /// A trained mixing.
    Mixing "mixing" {
        /// N.
        dim: u32,
        /// Where Q begins in the weights.
        q: u32,
        /// Where its vectors begin; 0 if there are none.
        vectors: u32,
    }
}

/// Appends records to the tables; returns where they are.
pub(crate) fn push_list<R: Record>(words: &mut Vec<u32>, records: Vec<R>) -> List {
    let list = List { begin: words.len() as u32, count: records.len() as u32 };
    words.extend_from_slice(bytemuck::cast_slice(&records));
    list
}

/// Records of the tables.
#[cfg(test)]
pub(crate) fn read<R: Record>(words: &[u32], at: u32, count: u32) -> Vec<R> {
    bytemuck::pod_collect_to_vec(&words[at as usize..][..count as usize * R::WORDS])
}

/// What a shader with this text needs to read records.
pub(crate) fn accessors(shader: &str) -> String {
    // Not the end of a longer name.
    let has = |name: &str| {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        shader.match_indices(name).any(|(at, _)| !shader[..at].ends_with(is_part))
    };
    let mut text = String::new();
    for record in ALL {
        let calls = |name: &str| has(&format!("{}_{name}(", record.prefix));
        if has(&record.size_name()) {
            text.push_str(&record.size());
        }
        if calls("at") {
            text.push_str(&record.whole());
        }
        text.extend(record.fields.iter().filter(|field| calls(field.name)).map(|field| field.accessor(record.prefix)));
    }
    text
}

impl Layout {
    fn size_name(&self) -> String {
        format!("{}_WORDS", self.prefix.to_uppercase())
    }

    fn size(&self) -> String {
        format!("\nconst {}: u32 = {}u;\n", self.size_name(), self.words)
    }

    /// The struct, and the function that reads it.
    fn whole(&self) -> String {
        let Self { name, prefix, fields, .. } = self;
        assert!(fields.iter().all(Field::is_word), "{name} is more than words, and not read at once");
        let list = |of: fn(&Field) -> String| fields.iter().map(of).collect::<Vec<_>>().join(", ");
        let members = list(|field| format!("{}: u32", field.name));
        let values = list(|field| format!("tables[at + {}u]", field.first));
        format!("\nstruct {name} {{ {members} }}\nfn {prefix}_at(at: u32) -> {name} {{ return {name}({values}); }}\n")
    }
}

impl Field {
    fn is_word(&self) -> bool {
        self.step.is_none() && !self.nested
    }

    /// The function that reads it.
    fn accessor(&self, prefix: &str) -> String {
        let Self { name, first, .. } = self;
        let (more, place) = match self.step {
            Some(step) => (", number: u32", format!("at + {first}u + number * {step}u")),
            None => ("", format!("at + {first}u")),
        };
        let value = if self.nested { place } else { format!("tables[{place}]") };
        format!("\nfn {prefix}_{name}(at: u32{more}) -> u32 {{ return {value}; }}\n")
    }
}

#[cfg(test)]
mod tests;
