//! Durations as people of Kubernetes write them: `5s`, `100ms`, `1m30s`, `2h`.

use std::time::Duration;

/// The duration of `text`, or why it is none.
pub(crate) fn parse(text: &str) -> Result<Duration, &'static str> {
    const NO_UNIT: &str = "has no unit";
    const UNKNOWN: &str = "is no duration";
    let mut total = Duration::ZERO;
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(UNKNOWN);
    }
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, tail) = rest.split_at(digits);
        let unit_len = tail.len() - tail.trim_start_matches(|c: char| c.is_ascii_alphabetic()).len();
        let (unit, tail) = tail.split_at(unit_len);
        let number: u64 = number.parse().map_err(|_| UNKNOWN)?;
        let part = match unit {
            "ms" => Some(Duration::from_millis(number)),
            "s" => Some(Duration::from_secs(number)),
            "m" => number.checked_mul(60).map(Duration::from_secs),
            "h" => number.checked_mul(3600).map(Duration::from_secs),
            "" if tail.is_empty() => return Err(NO_UNIT),
            _ => return Err(UNKNOWN),
        };
        total = part.and_then(|part| total.checked_add(part)).ok_or("is too long")?;
        rest = tail;
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_kubernetes_writes_them() {
        assert_eq!(parse("5s"), Ok(Duration::from_secs(5)));
        assert_eq!(parse("100ms"), Ok(Duration::from_millis(100)));
        assert_eq!(parse("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse("2h"), Ok(Duration::from_secs(7200)));
        assert_eq!(parse("0"), Ok(Duration::ZERO));
    }

    #[test]
    fn what_is_no_duration_says_why() {
        assert_eq!(parse("5"), Err("has no unit"));
        for text in ["", "s", "five", "5 s", "5d", "-5s", "1.5s", "5s!", "ü"] {
            assert_eq!(parse(text), Err("is no duration"), "{text:?}");
        }
        assert_eq!(parse("99999999999999999999s"), Err("is no duration"));
        assert_eq!(parse("18446744073709551615h"), Err("is too long"));
    }
}
