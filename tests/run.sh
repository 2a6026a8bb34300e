#!/bin/sh
# The whole test suite. The GPU tests need a Vulkan, Metal or DX12 adapter; where there is none, this installs the
# software Vulkan driver on Debian and Ubuntu, and says what to install elsewhere. It never skips them. The test of the
# Python example needs NumPy: HINTFLOW_PYTHON names an interpreter that has it, `none` leaves the test out; otherwise this
# looks for one, and puts NumPy into an environment of its own below target/ where there is none.
set -eu
cd "$(dirname "$0")/.."

has_adapter() {
    [ "$(uname)" != Linux ] && return 0 # Metal and DX12 come with the system
    has_loader && has_driver
}

# The library that programs open, libvulkan.so.1. Where there is no ldconfig, by its usual places.
has_loader() {
    PATH="$PATH:/sbin:/usr/sbin"
    if command -v ldconfig >/dev/null; then
        ldconfig -p 2>/dev/null | grep -q 'libvulkan\.so\.1'
    else
        ls /lib/libvulkan.so.1 /usr/lib*/libvulkan.so.1 /usr/lib/*/libvulkan.so.1 2>/dev/null | grep -q .
    fi || ls $(echo "${LD_LIBRARY_PATH:-}" | tr ':' '\n' | sed -n 's,.$,&/libvulkan.so.1,p') 2>/dev/null | grep -q so
}

# The description of a driver, which the loader reads.
has_driver() {
    [ -n "${VK_DRIVER_FILES:-}${VK_ICD_FILENAMES:-}" ] ||
        ls /usr/share/vulkan/icd.d/*.json /etc/vulkan/icd.d/*.json /usr/local/share/vulkan/icd.d/*.json 2>/dev/null | grep -q .
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

if ! has_adapter; then
    if command -v apt-get >/dev/null; then
        echo "No Vulkan loader or no driver found: installing Mesa's software driver (mesa-vulkan-drivers, libvulkan1)." >&2
        as_root apt-get update -q
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y mesa-vulkan-drivers libvulkan1
    else
        echo "No Vulkan loader or no driver found. Install Mesa's software driver and the loader, and run this again:" >&2
        echo "  Fedora: dnf install mesa-vulkan-drivers vulkan-loader" >&2
        echo "  Arch:   pacman -S vulkan-swrast vulkan-icd-loader" >&2
        exit 1
    fi
fi

# Without a session, Mesa's layer that sorts devices by display complains at every look at the adapters.
[ -n "${XDG_RUNTIME_DIR:-}${MESA_VK_DEVICE_SELECT:-}" ] || export NODEVICE_SELECT=1

has_numpy() {
    command -v "$1" >/dev/null && "$1" -c 'import numpy' 2>/dev/null
}

find_python() {
    own="${CARGO_TARGET_DIR:-target}/test-python"
    for python in python3 python "$own/bin/python"; do
        if has_numpy "$python"; then
            echo "$python"
            return
        fi
    done
    echo "No Python with NumPy found: installing NumPy into $own for the test of examples/read_model.py." >&2
    if python3 -m venv "$own" >&2 && "$own/bin/python" -m pip install -q --retries 1 --timeout 20 numpy >&2; then
        echo "$own/bin/python"
    else
        echo "SKIPPED: tests/rooms/python.rs. NumPy could not be installed; name a Python that has it in HINTFLOW_PYTHON." >&2
        echo none
    fi
}

[ -n "${HINTFLOW_PYTHON:-}" ] || HINTFLOW_PYTHON=$(find_python)
# Tests do not run in this folder alone, so a path must not be relative.
case $HINTFLOW_PYTHON in
/*) ;;
*/*) HINTFLOW_PYTHON=$PWD/$HINTFLOW_PYTHON ;;
esac
export HINTFLOW_PYTHON

exec cargo test --locked "$@"
