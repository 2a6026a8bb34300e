//! Recursion to a flat list: the nodes of one recursive coupling block (paper, eq. 6; docs/model.md, Recursion).

use super::Depth;

/// A node of the recursion: a range of columns that splits into an upper and a lower half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TreeNode {
    /// Heap number: root 1, upper child 2i, lower child 2i + 1.
    pub heap: u64,
    /// Recursion level; the root has 0.
    pub level: u32,
    /// First column.
    pub first: u32,
    /// Number of columns.
    pub size: u32,
}

impl TreeNode {
    /// Columns that condition the coupling: the first `floor(n / 2)`.
    pub(crate) fn upper(&self) -> u32 {
        self.size / 2
    }

    /// Columns that the coupling transforms: the rest.
    pub(crate) fn lower(&self) -> u32 {
        self.size - self.upper()
    }

    /// Whether the recursion goes on below this node.
    fn has_children(&self, depth: Depth) -> bool {
        self.size > 3 && depth.goes_below(self.level)
    }

    fn children(&self) -> [Self; 2] {
        let (heap, level) = (self.heap * 2, self.level + 1);
        [
            Self { heap, level, first: self.first, size: self.upper() },
            Self { heap: heap + 1, level, first: self.first + self.upper(), size: self.lower() },
        ]
    }
}

/// All nodes over `dim` columns in heap order, so level by level.
pub(crate) fn nodes(dim: u32, depth: Depth) -> Vec<TreeNode> {
    let mut nodes = vec![TreeNode { heap: 1, level: 0, first: 0, size: dim }];
    let mut next = 0;
    while let Some(node) = nodes.get(next).copied() {
        if node.has_children(depth) {
            nodes.extend(node.children());
        }
        next += 1;
    }
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_per_level_at_the_papers_sizes() {
        let per_level = |dim| {
            let nodes = nodes(dim, Depth::Full);
            let levels = nodes.iter().map(|n| n.level).max().unwrap() + 1;
            (0..levels).map(|l| nodes.iter().filter(|n| n.level == l).count()).collect::<Vec<_>>()
        };
        assert_eq!(per_level(20), [1, 2, 4, 8]);
        assert_eq!(per_level(100), [1, 2, 4, 8, 16, 32, 8]);
    }

    #[test]
    fn depth_zero_is_one_coupling_and_one_column_has_no_upper_part() {
        assert_eq!(nodes(20, Depth::Levels(0)).len(), 1);
        let single = nodes(1, Depth::Full);
        assert_eq!((single.len(), single[0].upper(), single[0].lower()), (1, 0, 1));
    }
}
