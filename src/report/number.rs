//! Numbers for readers.

/// With commas between groups of three digits.
#[must_use]
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// With four digits that count.
#[must_use]
pub(crate) fn short(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 || !size.is_finite() {
        return if size == 0.0 { "0".into() } else { value.to_string() };
    }
    if !(1e-3..1e6).contains(&size) {
        return format!("{value:.3e}");
    }
    let decimals = (3 - size.log10().floor() as i32).max(0) as usize;
    let text = format!("{value:.decimals$}");
    // Zeros before the point stay.
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_three_digits() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(grouped(u64::MAX), "18,446,744,073,709,551,615");
    }

    #[test]
    fn four_digits_count() {
        let shown = [0.0, 1.0, -12.345_678, 0.012_344, 100.0, 123_456.0, 1e6, -2.5e-7, f64::NAN].map(short);
        assert_eq!(shown, ["0", "1", "-12.35", "0.01234", "100", "123456", "1.000e6", "-2.500e-7", "NaN"]);
    }
}
