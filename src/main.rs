//! Arguments → command → exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    namesake::cli::main(std::env::args_os())
}
