#!/bin/sh
# The test that has Dawn's compiler read every shader. Needs node and npm: puts the module `webgpu` (130 MB) below target/.
# HINTFLOW_TEST_FLAGS in the environment are flags of cargo test, as of swiftshader.sh.
set -eu
cd "$(dirname "$0")/.."
folder=${CARGO_TARGET_DIR:-target}/node
case $folder in /*) ;; *) folder=$PWD/$folder ;; esac
for program in node npm; do
    command -v $program >/dev/null || { echo "tint.sh: there is no $program: install it (Debian: nodejs, npm)" >&2; exit 3; }
done
[ -e "$folder/node_modules/webgpu/index.js" ] ||
    npm install --silent --no-save --no-audit --no-fund --ignore-scripts --prefix "$folder" webgpu@0.6.2 ||
    { echo "tint.sh: npm cannot get the module webgpu" >&2; exit 3; }
HINTFLOW_NODE_MODULES=$folder/node_modules exec cargo test --locked ${HINTFLOW_TEST_FLAGS:-} --lib -- --exact \
    engine::gpu::kernels::shader::tests::judges::the_compiler_of_dawn_accepts_every_shader
