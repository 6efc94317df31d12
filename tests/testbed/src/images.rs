//! The images of the pods that conformance scenarios run, under the names that they have there, made of programs of this
//! machine: no registry is asked.

use std::fs;
use std::path::{Path, PathBuf};

use crate::binaries::binaries;
use crate::error::{Doing, Error, Result};
use crate::image_archive::{ImageArchive, ImageConfig, Layer};

/// The image of a pod's sandbox, as kubelet and containerd know it. It is held in `tests/testbed` alone: containerd must
/// be told this name.
pub const PAUSE: &str = "registry.k8s.io/pause:3.10";
/// The image of the pods that scenarios serve with.
pub const SOCAT: &str = "docker.io/alpine/socat:1.7.4.4";
/// The image of the pods that scenarios ask and connect from.
pub const NETSHOOT: &str = "docker.io/nicolaka/netshoot:v0.15";

/// The busybox applets that the images have beside their own programs. Not `nc` and `nslookup`: those are the full ones.
const APPLETS: &[&str] = &[
    "arping",
    "awk",
    "basename",
    "cat",
    "chmod",
    "cp",
    "cut",
    "date",
    "dd",
    "dirname",
    "echo",
    "env",
    "expr",
    "false",
    "find",
    "free",
    "getopt",
    "grep",
    "head",
    "hostname",
    "id",
    "ifconfig",
    "ip",
    "kill",
    "ls",
    "md5sum",
    "mkdir",
    "mktemp",
    "mv",
    "netstat",
    "od",
    "pgrep",
    "ping",
    "ping6",
    "printf",
    "ps",
    "pwd",
    "readlink",
    "realpath",
    "rm",
    "route",
    "sed",
    "seq",
    "sha256sum",
    "sleep",
    "sort",
    "stat",
    "tail",
    "tee",
    "test",
    "time",
    "timeout",
    "top",
    "touch",
    "tr",
    "traceroute",
    "true",
    "uname",
    "uniq",
    "uptime",
    "usleep",
    "vi",
    "wc",
    "wget",
    "which",
    "whoami",
    "xargs",
    "xxd",
    "yes",
    "[",
];

/// A command that goes into an image, and the Debian package that brings it.
struct Tool {
    command: &'static str,
    package: &'static str,
}

/// All of them, in the order in which [`suite`] takes them.
const TOOLS: [Tool; 7] = [
    Tool { command: "busybox", package: "busybox-static" },
    Tool { command: "dash", package: "dash" },
    Tool { command: "socat", package: "socat" },
    Tool { command: "nc.openbsd", package: "netcat-openbsd" },
    Tool { command: "nslookup", package: "bind9-dnsutils" },
    Tool { command: "dig", package: "bind9-dnsutils" },
    Tool { command: "curl", package: "curl" },
];

/// Says which commands are missing on this machine for the images.
pub(crate) fn check() -> Result<()> {
    find(TOOLS, &search_path()).map(drop)
}

/// The archive with all images that the scenarios' pods need, made if it is not there: the sandbox's [`PAUSE`],
/// [`SOCAT`] and [`NETSHOOT`]. It is kept beside the programs of the test bed.
pub fn suite_images() -> Result<PathBuf> {
    let programs = binaries()?;
    let cache = programs.parent().unwrap_or(programs).join("images");
    fs::create_dir_all(&cache).doing(cache.display())?;
    let archive = suite()?;
    let path = cache.join(format!("suite-{}.tar", archive.key()?));
    // Two at once write the same bytes, each at once.
    if !path.is_file() {
        archive.write(&path)?;
    }
    Ok(path)
}

/// The three images. They share what they have in common: a shell, the applets and the C library.
fn suite() -> Result<ImageArchive> {
    let [busybox, dash, socat, nc, nslookup, dig, curl] = find(TOOLS, &search_path())?;
    // The shell is dash: Debian's busybox shell prefers its own `nc` and `nslookup` to those on the PATH, and the
    // scenarios read the output of the real ones.
    let mut base = Layer::new().program("/bin/busybox", &busybox)?.program("/bin/sh", &dash)?;
    for applet in APPLETS {
        base = base.link(&format!("/bin/{applet}"), "/bin/busybox");
    }
    for folder in ["/dev", "/etc", "/proc", "/root", "/run", "/sys", "/usr/bin", "/var"] {
        base = base.folder(folder, 0o755);
    }
    let base = base.folder("/tmp", 0o1777);
    let serving = Layer::new().program("/usr/bin/socat", &socat)?.on_top_of(&base);
    let asking = Layer::new()
        .program("/usr/bin/nc", &nc)?
        .program("/usr/bin/nslookup", &nslookup)?
        .program("/usr/bin/dig", &dig)?
        .program("/usr/bin/curl", &curl)?
        .on_top_of(&base)
        .on_top_of(&serving);

    let mut archive = ImageArchive::new();
    let (base, serving, asking) = (archive.layer(base), archive.layer(serving), archive.layer(asking));
    let env = vec!["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned()];
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    // It holds the pod's namespaces and does nothing; the container engine ends it by SIGKILL.
    let pause = words(&["/bin/busybox", "tail", "-f", "/dev/null"]);
    archive.image(PAUSE, &[base], ImageConfig { entrypoint: pause, env: env.clone(), ..Default::default() });
    let socat = ImageConfig { entrypoint: words(&["socat"]), env: env.clone(), ..Default::default() };
    archive.image(SOCAT, &[base, serving], socat);
    let netshoot = ImageConfig { cmd: words(&["/bin/sh"]), env, ..Default::default() };
    archive.image(NETSHOOT, &[base, serving, asking], netshoot);
    Ok(archive)
}

/// Where commands are looked for: the PATH, and the folders that only root has on it.
fn search_path() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).chain(["/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(PathBuf::from)).collect()
}

/// The files of these commands, or one error that names the packages of all that are missing.
fn find<const N: usize>(tools: [Tool; N], path: &[PathBuf]) -> Result<[PathBuf; N]> {
    let in_folder = |folder: &Path, command: &str| folder.join(command).canonicalize().ok().filter(|p| p.is_file());
    let found = tools.each_ref().map(|tool| path.iter().find_map(|folder| in_folder(folder, tool.command)));
    let missing = tools.iter().zip(&found).filter(|(_, found)| found.is_none()).map(|(tool, _)| tool);
    let (commands, mut packages): (Vec<_>, Vec<_>) = missing.map(|tool| (tool.command, tool.package)).unzip();
    packages.dedup();
    if !commands.is_empty() {
        return Err(Error::new(format!(
            "the images of the test bed's pods are made of programs of this machine, and there is no {}; install the \
             Debian packages: apt-get install {}",
            commands.join(", "),
            packages.join(" ")
        )));
    }
    Ok(found.map(Option::unwrap_or_default))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_missing_packages_are_named_at_once() {
        let nowhere = [PathBuf::from("/nonexistent")];
        let error = find(TOOLS, &nowhere).unwrap_err().to_string();
        assert!(error.contains("there is no busybox, dash, socat, nc.openbsd, nslookup, dig, curl;"), "{error}");
        assert!(
            error.ends_with("apt-get install busybox-static dash socat netcat-openbsd bind9-dnsutils curl"),
            "{error}"
        );
        assert!(find([Tool { command: "sh", package: "dash" }], &search_path()).unwrap()[0].is_file());
    }
}
