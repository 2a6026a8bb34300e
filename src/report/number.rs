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
    trimmed(text)
}

fn trimmed(text: String) -> String {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
}

/// A number among others that deviate so much from each other: with four digits that count, with more if the first of them
/// are those of an offset, and with fewer if the number is small beside the deviation. Of a column of one number, whose deviation is 0, with all.
#[must_use]
pub(crate) fn beside(value: f64, deviation: f64) -> String {
    /// Digits of the deviation that are shown.
    const DIGITS: i32 = 3;
    let size = value.abs();
    if size == 0.0 || !size.is_finite() || !deviation.is_finite() {
        return short(value);
    }
    if deviation <= 0.0 {
        // A number that was a 32-bit float has no more digits than those.
        let rounded = value as f32;
        return if f64::from(rounded) == value { brief(rounded, rounded.into()) } else { brief(value, value) };
    }
    let place = |x: f64| x.log10().floor() as i32;
    let digits = place(size) - place(deviation) + DIGITS;
    let decimals = DIGITS - place(deviation);
    if digits < DIGITS && (0..=6).contains(&decimals) {
        let text = trimmed(format!("{value:.*}", decimals as usize));
        return if text == "-0" { "0".into() } else { text };
    }
    if digits <= 4 {
        return short(value);
    }
    // All that a number has.
    let digits = digits.min(17);
    if (1e-3..1e15).contains(&size) {
        format!("{value:.*}", (digits - 1 - place(size)).max(0) as usize)
    } else {
        format!("{value:.*e}", digits as usize - 1)
    }
}

fn brief<T: std::fmt::Display + std::fmt::LowerExp>(number: T, size: f64) -> String {
    if (1e-4..1e15).contains(&size.abs()) { number.to_string() } else { format!("{number:e}") }
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
    fn numbers_beside_an_offset_have_the_digits_that_differ() {
        let time = [1_700_000_001.146_871_8, 1_700_000_123.0, -999.0].map(|value| beside(value, 0.29));
        assert_eq!(time, ["1700000001.147", "1700000123.000", "-999.000"]);
        assert_eq!(beside(1_700_000_001.146, 86_400.0), "1700000001");
        assert_eq!(beside(1.000_000_012_3e51, 1e43), "1.0000000123e51");
        assert_eq!([12.345_678, 0.001_23].map(|value| beside(value, 2.0)), ["12.35", "0.001"]);
        assert_eq!([-4.56e-4, 0.017, -1e-9].map(|value| beside(value, 0.16)), ["-0.0005", "0.017", "0"]);
        assert_eq!([1.5e-7, 2.5].map(|value| beside(value, 2e-5)), ["1.500e-7", "2.5000000"]);
        // Of one number.
        assert_eq!(
            [f64::from(0.1f32), 1_700_000_000.123, 7.0, 1.234_567_890_1e51].map(|x| beside(x, 0.0)),
            ["0.1", "1700000000.123", "7", "1.2345678901e51"]
        );
        assert_eq!(beside(0.0, 1.0) + &beside(f64::NAN, 1.0), "0NaN");
    }

    #[test]
    fn four_digits_count() {
        let shown = [0.0, 1.0, -12.345_678, 0.012_344, 100.0, 123_456.0, 1e6, -2.5e-7, f64::NAN].map(short);
        assert_eq!(shown, ["0", "1", "-12.35", "0.01234", "100", "123456", "1.000e6", "-2.500e-7", "NaN"]);
    }
}
