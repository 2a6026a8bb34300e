// In place of a row, an offset or a copy: there is none, or nobody asks for it. Mirrors `launch::NONE`.
const NONE: u32 = 0xffffffffu;
