#!/bin/sh
# The whole test suite. The GPU tests need a Vulkan, Metal or DX12 adapter; where there is none, this installs the
# software Vulkan driver on Debian and Ubuntu, and says what to install elsewhere. It never skips them.
set -eu
cd "$(dirname "$0")/.."

has_adapter() {
    [ "$(uname)" != Linux ] && return 0 # Metal and DX12 come with the system
    ls /usr/share/vulkan/icd.d/*.json /etc/vulkan/icd.d/*.json >/dev/null 2>&1 || [ -n "${VK_DRIVER_FILES:-}" ]
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

if ! has_adapter; then
    if command -v apt-get >/dev/null; then
        echo "No Vulkan driver found: installing Mesa's software driver (mesa-vulkan-drivers, libvulkan1)." >&2
        as_root apt-get update -q
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y mesa-vulkan-drivers libvulkan1
    else
        echo "No Vulkan driver found. Install Mesa's software driver and run this again:" >&2
        echo "  Fedora: dnf install mesa-vulkan-drivers vulkan-loader" >&2
        echo "  Arch:   pacman -S vulkan-swrast vulkan-icd-loader" >&2
        exit 1
    fi
fi

exec cargo test --locked "$@"
