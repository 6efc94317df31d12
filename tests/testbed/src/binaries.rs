//! The real programs: built once by `tests/testbed/build`, found again by the hash it prints.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::error::{Error, Result};

/// The folder with `etcd`, `kube-apiserver`, `kube-controller-manager`, `kubectl` and `coredns`.
///
/// Runs `tests/testbed/build` when they are missing (about 9 minutes on 2 cores, once), and says so on standard error.
pub fn binaries() -> Result<&'static Path> {
    static FOUND: OnceLock<std::result::Result<PathBuf, String>> = OnceLock::new();
    match FOUND.get_or_init(build) {
        Ok(folder) => Ok(folder),
        Err(text) => Err(Error::new(text.clone())),
    }
}

fn build() -> std::result::Result<PathBuf, String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("build");
    // Standard error passes through: a build of nine minutes must not look like a hang.
    let out = Command::new(&script)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|e| format!("cannot run {}: {e}; it builds the test bed's programs", script.display()))?;
    if !out.status.success() {
        return Err(format!(
            "{} failed ({}); its messages are above. Without the real programs there is no test bed",
            script.display(),
            out.status
        ));
    }
    let folder = PathBuf::from(String::from_utf8_lossy(&out.stdout).trim());
    for program in ["etcd", "kube-apiserver", "kube-controller-manager", "kubectl", "coredns"] {
        if !folder.join(program).is_file() {
            return Err(format!(
                "{} printed {} but there is no {program} in it; remove that folder and run the script again",
                script.display(),
                folder.display()
            ));
        }
    }
    Ok(folder)
}
