// What the networks of a stage sent to a column of one quad of samples. Needs the bindings `arena` and `tables`,
// `launch.tile`.

// Adds the column's slots to its gradient, in the order of its list.
fn sum_slots(lists: u32, column: u32, slots: u32, d_x: u32, quad: u32) {
    let stride = launch.tile.stride;
    let list = lists + column * LIST_WORDS;
    let begin = list_begin(list);
    let count = list_count(list);
    let at = (d_x + column) * stride + quad;
    var sum = arena[at];
    for (var i = 0u; i < count; i++) {
        sum += arena[(slots + slot_row(begin + i * SLOT_WORDS)) * stride + quad];
    }
    arena[at] = sum;
}
