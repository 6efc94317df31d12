//! Problems with settings: every one that was found, each with its place and a remedy.

use std::fmt;

/// One thing that is wrong. Reads `<place>: <why>; <remedy>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The flag, variable, or file, line and key, with the value.
    pub place: String,
    /// What is wrong.
    pub why: String,
    /// What to do.
    pub remedy: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.place, self.why, self.remedy)
    }
}

/// All that is wrong, in the order in which it was found; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// The problems.
    pub problems: Vec<Problem>,
}

impl ConfigError {
    /// One problem.
    pub(super) fn one(place: impl Into<String>, why: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { problems: vec![Problem { place: place.into(), why: why.into(), remedy: remedy.into() }] }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.problems.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}

/// The candidate closest to `word` by edit distance, if it is near enough to be what was meant.
pub(super) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |word: &str| word.to_ascii_lowercase().replace('-', "_");
    let word = plain(word);
    candidates
        .into_iter()
        .map(|candidate| (distance(&word, &plain(candidate)), candidate))
        .filter(|(far, candidate)| *far <= 1 + candidate.len() / 4)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Levenshtein's distance, in bytes.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cell, y) in row.iter_mut().skip(1).zip(b.bytes()) {
            let here = (diagonal + usize::from(x != y)).min(left + 1).min(*cell + 1);
            diagonal = *cell;
            *cell = here;
            left = here;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(a.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_found_or_none() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        let words = ["zone", "ttl", "negttl", "log_format"];
        assert_eq!(nearest("zones", words), Some("zone"));
        assert_eq!(nearest("tll", words), Some("ttl"));
        assert_eq!(nearest("log-formt", words), Some("log_format"));
        assert_eq!(nearest("forward", words), None);
    }
}
