# The table of benches/compilers.sh for one family, from the lines that benches/compilers.c prints. Set by the caller:
# family; cases: file with the cases of each kernel and whether it has the shape that is tried first; loops: file that
# benches/loops.awk made.

function complain(text) {
    print "compilers.sh: " family ": " name ": " text > "/dev/stderr"
    bad = 1
}

function ceil(x, step) { return int((x + step - 1) / step) * step }

function least(a, b) { return a < b ? a : b }

# Waves of 64 threads for each unit of 64 or 32 lanes, by registers and by the memory of workgroups, which four units
# share. (What drivers say counts some waves twice and leaves out workgroups.)
function waves(registers, bytes, threads,    of_group, groups) {
    of_group = ceil(threads, 64) / 64
    groups = int(4 * least(most, int(all / ceil(registers, granule))) / of_group)
    if (bytes > 0) groups = least(groups, int(memory / ceil(bytes, 512)))
    return groups * of_group / 4
}

BEGIN {
    # Registers of a lane of a unit, in which steps a kernel gets them, most waves; memory of four units. Where waves of
    # 64 run on 32 lanes, registers are counted as such waves see them.
    all = 512; granule = 8; most = 16; memory = 131072; wanted = 4
    if (family ~ /^(polaris10|vega10)$/) { all = 256; granule = 4; most = 10; memory = 65536; wanted = 2 }
    if (family == "mi200") { all = 512; granule = 8; most = 8; memory = 65536; wanted = 2 }
    if (family == "navi10") { granule = 4; most = 20 }
    if (family ~ /^(gfx1100|navi31|gfx1201)$/) { all = 768; granule = 12 }
    while ((getline line < cases) > 0) { split(line, of, "\t"); users[of[1]] = of[2]; first[of[1]] = of[3] }
    while ((getline line < loops) > 0) {
        split(line, of, "\t")
        length_of[of[1]] = of[2]; fmas[of[1]] = of[3]; loads[of[1]] = of[4]; waits[of[1]] = of[5]
    }
}

/^#/ {
    print "\n" substr($0, 3) "\n"
    print "| kernel | cases | threads | VGPRs | SGPRs | spilled | scratch | LDS | waves | main loop | instructions | latency | inverse |"
    print "|---|---|---|---|---|---|---|---|---|---|---|---|---|"
    next
}

{
    for (key in value) delete value[key]
    for (i = 4; i <= NF; i++) { split($i, pair, "="); value[pair[1]] = pair[2] }
    name = $1
    sub(/\.spv$/, "", name)
    kernel = name
    sub(/\..*/, "", kernel)
    spilled = value["Spilled VGPRs"] + value["Spilled SGPRs"]
    had = waves(value["VGPRs"], value["LDS size"], $2)
    loop = fmas[name] > 0 ? fmas[name] " of " length_of[name] : ""
    printf "| %s | %s | %s of %s | %s | %s | %s | %s | %s | %.1f | %s | %s | %s | %s |\n", name, users[name], $2, $3,
        value["VGPRs"], value["SGPRs"], spilled, value["Scratch size"], value["LDS size"], had, loop,
        value["Instructions"], value["Latency"], value["Inverse Throughput"]
    if (!("VGPRs" in value) || !("Scratch size" in value)) complain("the driver does not say what it needs")
    if (spilled + value["Scratch size"] > 0) {
        complain("spilled registers: " spilled ", bytes of scratch: " value["Scratch size"])
    }
    # A load that waits for another takes as long as all of them together.
    if (waits[name] > 6) {
        complain("its main loop waits " waits[name] " times for " loads[name] " loads")
    }
    # Packs of narrow nodes need more memory for a thread; half as many waves must do.
    needed = kernel == "narrow_backward" ? wanted / 2 : wanted
    if (kernel ~ /^(networks_packed|networks_packed_backward|narrow_backward|weight_gradient)$/ && first[name] == "first" && had < needed) {
        complain(had " waves, " needed " are wanted")
    }
    kernels++
}

END { exit bad || kernels == 0 }
