//! Dates and times of run folders and manifests, in UTC.

use std::time::{SystemTime, UNIX_EPOCH};

/// The present time as `2026-11-27T18:03:59Z`.
pub(crate) fn now() -> String {
    let seconds = seconds();
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{}T{hour:02}:{minute:02}:{second:02}Z", date(seconds / 86_400))
}

/// The present day as `2026-11-27`.
pub(crate) fn today() -> String {
    date(seconds() / 86_400)
}

fn seconds() -> u64 {
    // A clock before 1970 is not worth an error.
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

/// The Gregorian date of a number of days since 1970-01-01.
fn date(mut days: u64) -> String {
    let leap = |y: u64| y.is_multiple_of(4) && (!y.is_multiple_of(100) || y.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        for (days, expected) in [(0, "1970-01-01"), (58, "1970-02-28"), (59, "1970-03-01"), (11_016, "2000-02-29")] {
            assert_eq!(date(days), expected);
        }
        assert_eq!(date(19_722), "2023-12-31");
        assert_eq!(date(20_784), "2026-11-27");
        assert!(now().starts_with(&today()));
    }
}
