//! The one error of the bed: a sentence that says what did not work, where, and what helps.

use std::fmt;

/// What did not work, where, and what helps. `Debug` prints the same sentence as `Display`, so that a test that returns
/// `Result<(), testbed::Error>` or unwraps shows a readable message.
pub struct Error(String);

/// The result of everything in the bed that can fail.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error with this sentence.
    pub fn new(text: impl Into<String>) -> Error {
        Error(text.into())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

/// Puts "what was being done" in front of another error.
pub(crate) trait Doing<T> {
    fn doing(self, what: impl fmt::Display) -> Result<T>;
}

impl<T, E: fmt::Display> Doing<T> for std::result::Result<T, E> {
    fn doing(self, what: impl fmt::Display) -> Result<T> {
        self.map_err(|e| Error(format!("{what}: {e}")))
    }
}
