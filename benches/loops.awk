# Main loops of kernels in the assembly of AMD's compiler: of the loops that have no other inside, the one with the most
# multiply-adds, of several the last. For each file a line, fields with tabs between: file, instructions of the loop,
# multiply-adds among them, loads from memory, and how often it waits for loads that it has issued since it last did.
#
#   awk -f loops.awk FILE.s ...

function is_fma(op) { return op ~ /^v_(dual_)?(fma|fmac|mad|mac)(ak|amk|k)?_f32/ || op ~ /^v_pk_fma/ }

# A loop is what lies between a branch and the place before it to which it leads.
function finish(    i, j, b, inner, most, loads, waits, open, fma, all, best) {
    if (name == "") return
    most = -1
    for (i = 1; i <= loops; i++) {
        inner = 1
        for (j = 1; j <= loops; j++) if (j != i && from[j] >= from[i] && to[j] <= to[i] && from[j] > from[i]) inner = 0
        if (!inner) continue
        fma = all = loads = waits = open = 0
        for (b = from[i]; b <= to[i]; b++) {
            op = ops[b]
            if (op == "") continue
            all++
            fma += is_fma(op)
            # Two operations in one instruction.
            if (args[b] ~ /:: *v_dual_(fma|fmac)/) fma++
            if (op ~ /^(buffer|global|flat)_load/) { loads++; open++ }
            if (op ~ /^s_waitcnt/ && args[b] ~ /vmcnt/ && open > 0) { waits++; open = 0 }
        }
        if (fma >= most) { most = fma; best = all "\t" fma "\t" loads "\t" waits }
    }
    if (most > 0) print name "\t" best
    else print name "\t0\t0\t0\t0"
    for (i = 1; i <= lines; i++) { delete ops[i]; delete args[i] }
    for (i in place) delete place[i]
    lines = loops = 0
}

FNR == 1 { finish(); name = FILENAME; sub(/.*\//, "", name); sub(/(\.spv)?\.s$/, "", name) }
/^BB[0-9]+:/ { label = $1; sub(/:.*/, "", label); place[label] = lines + 1; next }
/^[ \t]+[a-z]/ {
    text = $0
    sub(/;.*/, "", text)
    $0 = text
    lines++
    ops[lines] = $1
    $1 = ""
    args[lines] = $0
    if (ops[lines] ~ /^s_c?branch/) {
        target = $2
        # The longest loop that begins there.
        if (target in place) {
            for (i = 1; i <= loops && from[i] != place[target]; i++) {}
            from[i] = place[target]
            to[i] = lines
            if (i > loops) loops = i
        }
    }
}
END { finish() }
