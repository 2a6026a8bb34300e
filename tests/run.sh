#!/bin/sh
# The whole test suite. The GPU tests need a Vulkan, Metal or DX12 adapter; where there is none, this installs the
# software Vulkan driver on Debian and Ubuntu, and says what to install elsewhere. It never skips them.
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

exec cargo test --locked "$@"
