//! The running controller half.

use super::RunError;
use crate::config::controller::Settings;

/// Runs the controller until a signal.
///
/// # Errors
/// What keeps it from starting or going on; a signal is none.
pub fn run_controller(settings: Settings) -> Result<(), RunError> {
    drop(settings);
    Err(RunError::Died("the controller".to_owned()))
}
