//! The commands: one file each. What is shared is here: exit codes, and how errors are written.
//!
//! Errors go to stderr as `namesake: <what>: <why>; <remedy>`, one a line. Answers go to stdout; a reader that has seen
//! enough (`| head`) is no error.

mod controller;
mod dns;
mod expand;
mod explain;
mod generate;
mod http;
mod join;
mod plan;
mod preview;
mod sandbox;
mod settings;

use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::{ColorChoice, Parser, Subcommand};

use crate::config::ConfigError;
use crate::serve::RunError;

/// What a process of ours ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Ok,
    /// It could not be done: an address in use, a server that does not answer.
    Failure,
    /// It was asked for wrongly: flags, variables, settings file.
    Usage,
    /// There are conflicts, and the caller wants to fail on them.
    Conflict,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Ok => 0,
            Exit::Failure => 1,
            Exit::Usage | Exit::Conflict => 2,
        })
    }
}

const EXIT_CODES: &str = "Exit codes:
  0  done, or ended by a signal as asked
  1  it could not be done: an address is in use, a server does not answer
  2  flags, variables or settings file are wrong";

/// One name for a service, in every cluster: DNS for the Kubernetes Multi-Cluster Services API (KEP-1645).
#[derive(Debug, Parser)]
#[command(
    name = "namesake",
    version,
    color = ColorChoice::Never,
    disable_help_subcommand = true,
    arg_required_else_help = true,
    after_help = EXIT_CODES,
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve clusterset.local from ServiceImports and EndpointSlices
    #[command(long_about = dns::ABOUT, after_help = dns::EXAMPLES)]
    Dns(dns::Args),
    /// Make ServiceImports of ServiceExports, in every member cluster
    #[command(long_about = controller::ABOUT, after_help = controller::EXAMPLES)]
    Controller(controller::Args),
    /// Say what a name answers, and why
    #[command(long_about = explain::ABOUT, after_help = explain::EXAMPLES)]
    Explain(explain::Args),
    /// Run a clusterset from a folder of YAML: the real merge and the real DNS, without a cluster
    #[command(long_about = sandbox::ABOUT, after_help = sandbox::EXAMPLES)]
    Sandbox(sandbox::Args),
    /// Say what the controller would write
    #[command(long_about = plan::ABOUT, after_help = plan::EXAMPLES)]
    Plan(plan::Args),
    /// Write CRDs, made from this program's own types
    #[command(long_about = generate::ABOUT, after_help = generate::EXAMPLES)]
    Generate(generate::Args),
    /// Make a cluster a member of the clusterset
    #[command(long_about = join::JOIN, after_help = join::JOIN_EXAMPLES)]
    Join(join::JoinArgs),
    /// Take a cluster out of the clusterset
    #[command(long_about = join::LEAVE, after_help = join::LEAVE_EXAMPLES)]
    Leave(join::LeaveArgs),
}

/// Runs the command of these arguments (the first is the program's name).
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version come this way too. Nobody is left to tell when this print fails.
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage.into() } else { Exit::Ok.into() };
        }
    };
    match cli.command {
        Command::Dns(args) => dns::command(&args).into(),
        Command::Controller(args) => controller::command(&args).into(),
        Command::Explain(args) => explain::command(&args).into(),
        Command::Sandbox(args) => sandbox::command(&args).into(),
        Command::Plan(args) => plan::command(&args).into(),
        Command::Generate(args) => generate::command(&args).into(),
        Command::Join(args) => join::join(&args).into(),
        Command::Leave(args) => join::leave(&args).into(),
    }
}

/// Runs a half by its settings, if they are right.
fn run<S>(settings: Result<S, ConfigError>, half: impl FnOnce(S) -> Result<(), RunError>) -> Exit {
    let settings = match settings {
        Ok(settings) => settings,
        Err(error) => {
            complain(&error);
            return Exit::Usage;
        }
    };
    match half(settings) {
        Ok(()) => Exit::Ok,
        Err(error) => {
            complain(&error);
            Exit::Failure
        }
    }
}

/// Writes `error` to stderr, each of its lines as one of ours.
pub(crate) fn complain(error: &dyn Display) {
    let mut stderr = io::stderr().lock();
    for line in error.to_string().lines() {
        // Nobody is left to tell.
        let _ = writeln!(stderr, "namesake: {line}");
    }
}

/// Writes `text` to stdout.
fn print(text: &str) -> Exit {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            complain(&format_args!("stdout: {error}; give it a place to write to"));
            Exit::Failure
        }
        _ => Exit::Ok,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_of_the_commands_is_sound() {
        Cli::command().debug_assert();
    }
}
