//! From what was drawn to the bytes of files, and to the disk.

use std::path::{Path, PathBuf};

use crate::atomic::{Overwrite, write_atomic};
use crate::error::Result;

/// Writing into memory fails only if this crate is wrong.
const IN_MEMORY: &str = "writing into memory";

/// An RGB picture as a PNG file.
pub(super) fn png(width: u32, height: u32, rgb: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header().expect(IN_MEMORY);
    writer.write_image_data(rgb).expect(IN_MEMORY);
    writer.finish().expect(IN_MEMORY);
    bytes
}

/// Gives an SVG drawn in `scale` units per pixel its size in pixels, round joints as in the PNG, and the images.
pub(super) fn finish_svg(svg: &str, (width, height): (u32, u32), scale: u32, images: &str) -> String {
    let body = svg.split_once('>').map_or("", |(_, body)| body);
    // The first element is the white ground: images lie on it and under everything else, as in the PNG.
    let (ground, body) = body.split_at(body.find("/>").map_or(0, |end| end + 2));
    let (units_w, units_h) = (width * scale, height * scale);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {units_w} {units_h}\" stroke-linejoin=\"round\" stroke-linecap=\"round\">{ground}\n{images}{body}"
    )
}

pub(super) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0u32, |word, &b| word << 8 | u32::from(b)) << (8 * (3 - chunk.len()));
        for k in 0..4 {
            let digit = DIGITS[(word >> (18 - 6 * k)) as usize & 63];
            text.push(if k <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

/// Appended and not set as the extension: `cross4.0` is a name, not a file of the type `0`.
pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Writes a file so that a reader sees the old one or the whole new one.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    write_atomic(path, Overwrite::Yes, |file| file.write_all(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_pads_every_length() {
        assert_eq!(
            ["", "f", "fo", "foo", "foob"].map(|s| base64(s.as_bytes())),
            ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg=="]
        );
    }
}
