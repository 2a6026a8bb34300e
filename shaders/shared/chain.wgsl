// Where the parameters of a column are that the networks of a stage have left. What becomes of the column is in
// `affine.wgsl` or in `spline.wgsl`, of which every shader that needs this one gets the one of its model. They have the
// same functions:
//
// couple_column: the column's value through its maps, and `log_det` plus their log-derivatives
// uncouple_column: the inverse
// uncouple_back: gradients back through the inverse, for models that are trained by it
// uncouple_node: as much of the inverse as is possible, on the inverse walk, once the networks of a node have run
// couple_back: gradients of the column and of the parameters, from those of the result and of the log-determinant
//
// In them `st` and `d_st` are the arena indices of the first rows for this quad. Needs the binding `tables`.

struct Through {
    v: vec4<f32>,
    log_det: vec4<f32>,
}
