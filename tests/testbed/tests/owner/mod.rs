//! Owners of beds that get killed, and what carries the mark of a bed.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A test of this program that is ignored, as a process of its own.
///
/// It ends with the test that calls, also by a panic: a bed whose owner lives is nobody else's to end.
pub fn command(test: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", test, "--nocapture"]);
    command
}

/// Starts such a test and waits until it says where its bed is: a line with `bed: ` and the folder.
pub fn start(command: &mut Command) -> (Child, PathBuf) {
    let mut owner = command.stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(owner.stdout.take().unwrap()).lines();
    let line =
        lines.map_while(Result::ok).find(|line| line.contains("bed: ")).expect("the owner says where its bed is");
    (owner, PathBuf::from(line.split("bed: ").nth(1).unwrap()))
}

/// All processes there are.
pub fn pids() -> impl Iterator<Item = u32> {
    std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The processes that carry the mark of this bed.
pub fn marked(bed: &Path) -> Vec<u32> {
    let mark = format!("NAMESAKE_TESTBED={}", bed.display());
    let has_mark = |pid: &u32| {
        let env = testbed::environment(*pid).unwrap_or_default();
        env.split(|b| *b == 0).any(|var| var == mark.as_bytes())
    };
    pids().filter(has_mark).collect()
}
