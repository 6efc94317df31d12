//! Where beds live, whose they are, and what ends when their owner is gone.
//!
//! Every process of a bed carries the bed's folder in its environment ([`MARK`]). That mark, and not a list of pids,
//! says what belongs to a bed: it has no gap between a start and a note of it, and no pid can be taken over by another
//! program.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::error::{Doing, Error, Result};

/// The environment variable that names the bed a process belongs to.
pub(crate) const MARK: &str = "NAMESAKE_TESTBED";

/// The file in a bed's folder that names its owner: `<pid> <start time>`, or `kept` for `testbed up`.
const OWNER: &str = "owner";

/// The folder of all beds of this user: private, and the same for every test run, so that stale beds are found.
pub(crate) fn base() -> Result<PathBuf> {
    let uid = fs::metadata("/proc/self").doing("reading /proc/self (the test bed needs Linux)")?.uid();
    let base = std::env::temp_dir().join(format!("namesake-testbed-{uid}"));
    let made = fs::DirBuilder::new().mode(0o700).create(&base);
    if let Err(e) = made
        && e.kind() != std::io::ErrorKind::AlreadyExists
    {
        return Err(Error::new(format!("cannot make {}: {e}", base.display())));
    }
    let meta = fs::symlink_metadata(&base).doing(base.display())?;
    if !meta.is_dir() || meta.uid() != uid || meta.mode() & 0o077 != 0 {
        return Err(Error::new(format!(
            "{} is not a private folder of this user; remove it or set TMPDIR to another place",
            base.display()
        )));
    }
    for sub in ["beds", "ports"] {
        fs::create_dir_all(base.join(sub)).doing(base.join(sub).display())?;
    }
    Ok(base)
}

/// Only one process at a time makes beds, sweeps or hands out ports. Ends when dropped.
pub(crate) fn lock(base: &Path) -> Result<File> {
    let path = base.join("lock");
    let file = File::create(&path).doing(path.display())?;
    file.lock().doing(format!("locking {}", path.display()))?;
    Ok(file)
}

/// Makes a bed's folder with this process as its owner. Call with the lock held.
pub(crate) fn claim(dir: &Path) -> Result<()> {
    fs::create_dir_all(dir).doing(dir.display())?;
    let me = std::process::id();
    let start = start_time(me).ok_or_else(|| Error::new("cannot read /proc/self/stat (the test bed needs Linux)"))?;
    fs::write(dir.join(OWNER), format!("{me} {start}\n")).doing(dir.display())
}

/// Marks a bed as one that outlives its maker.
pub(crate) fn keep(dir: &Path) -> Result<()> {
    fs::write(dir.join(OWNER), "kept\n").doing(dir.display())
}

/// Whether a folder is a bed, alive or stale.
pub(crate) fn is_bed(dir: &Path) -> bool {
    dir.join(OWNER).is_file()
}

/// Whether somebody still wants this bed: it is kept, or its owner lives.
pub(crate) fn is_owned(dir: &Path) -> bool {
    let Ok(text) = fs::read_to_string(dir.join(OWNER)) else { return false };
    if text.trim() == "kept" {
        return true;
    }
    let mut words = text.split_whitespace();
    let (Some(pid), Some(start)) = (words.next().and_then(|w| w.parse().ok()), words.next()) else { return false };
    start_time(pid).is_some_and(|now| now == start)
}

/// Ends and removes the beds whose owner is gone, and frees ports of beds that are gone. Call with the lock held.
pub(crate) fn sweep(base: &Path) -> Result<Vec<PathBuf>> {
    let mut gone = Vec::new();
    for entry in fs::read_dir(base.join("beds")).doing(base.display())?.flatten() {
        let dir = entry.path();
        if dir.is_dir() && !is_owned(&dir) {
            remove(&dir)?;
            gone.push(dir);
        }
    }
    for dir in without_folder() {
        end_processes(&dir)?;
        gone.push(dir);
    }
    for entry in fs::read_dir(base.join("ports")).doing(base.display())?.flatten() {
        let holder = fs::read_to_string(entry.path()).unwrap_or_default();
        if !is_bed(Path::new(holder.trim())) {
            let _ = fs::remove_file(entry.path());
        }
    }
    Ok(gone)
}

/// Ends every process of a bed, then removes its folder; and before that the beds in that folder, such as one of
/// `testbed up` in a test.
pub(crate) fn remove(dir: &Path) -> Result<()> {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten().filter(|entry| is_bed(&entry.path())) {
        remove(&entry.path())?;
    }
    end_processes(dir)?;
    // A folder that a dying process has just written to can be "not empty" once.
    let mut last = None;
    for _ in 0..20 {
        match fs::remove_dir_all(dir) {
            Ok(()) => return Ok(()),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(e) => last = Some(e),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Err(Error::new(format!("cannot remove {}: {}", dir.display(), last.map(|e| e.to_string()).unwrap_or_default())))
}

/// The control group of a bed's containers in each hierarchy: `namesake-testbed/<bed>`.
pub(crate) fn cgroup(bed: &Path) -> String {
    format!("namesake-testbed/{}", bed.file_name().unwrap_or_default().to_string_lossy())
}

/// Removes a bed's control groups, whose processes have been told to end.
fn remove_cgroups(bed: &Path) -> Result<()> {
    let Ok(hierarchies) = fs::read_dir("/sys/fs/cgroup") else { return Ok(()) };
    for hierarchy in hierarchies.flatten() {
        let group = hierarchy.path().join(cgroup(bed));
        let deadline = Instant::now() + Duration::from_secs(10);
        while group.is_dir() {
            // A group goes when its last process is gone: the kernel ends those of a PID namespace by and by.
            match remove_cgroup(&group) {
                Err(e) if Instant::now() > deadline => return Err(e).doing(format!("removing {}", group.display())),
                _ => std::thread::sleep(Duration::from_millis(5)),
            }
        }
        // Other beds may have groups beside.
        let _ = fs::remove_dir(hierarchy.path().join("namesake-testbed"));
    }
    Ok(())
}

fn remove_cgroup(group: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(group)?.flatten() {
        if entry.file_type()?.is_dir() {
            remove_cgroup(&entry.path())?;
        }
    }
    fs::remove_dir(group)
}

/// Ends every process that carries the mark of this bed, and removes the control groups of its containers.
pub(crate) fn end_processes(dir: &Path) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let left = processes(dir);
        if left.is_empty() {
            return remove_cgroups(dir);
        }
        for pid in &left {
            // Already gone is what we want.
            let _ = kill(Pid::from_raw(*pid as i32), Signal::SIGKILL);
        }
        if Instant::now() > deadline {
            return Err(Error::new(format!("processes {left:?} of the bed {} do not end", dir.display())));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The pids of the processes that carry the mark of this bed. The dead (zombies) are not among them.
pub(crate) fn processes(dir: &Path) -> Vec<u32> {
    let dir = dir.as_os_str().as_encoded_bytes();
    marks().filter(|(_, mark)| mark.as_os_str().as_encoded_bytes() == dir).map(|(pid, _)| pid).collect()
}

/// The folders of beds that processes belong to and that are no beds any more: somebody has removed them. Processes of
/// other users, or that see another file system than we do, are none of ours.
fn without_folder() -> BTreeSet<PathBuf> {
    let seen = |path: &str| fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()));
    let user = |pid: &str| fs::metadata(format!("/proc/{pid}")).ok().map(|meta| meta.uid());
    let ours = |pid: u32| user(&pid.to_string()) == user("self") && seen(&format!("/proc/{pid}/root/")) == seen("/");
    marks().filter(|(pid, dir)| dir.is_absolute() && !is_bed(dir) && ours(*pid)).map(|(_, dir)| dir).collect()
}

/// Every other process that belongs to a bed, and the bed's folder.
fn marks() -> impl Iterator<Item = (u32, PathBuf)> {
    let me = std::process::id();
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()).filter(move |pid| *pid != me);
    pids.filter_map(|pid| {
        let environment = environment(pid)?;
        let mark =
            environment.split(|b| *b == 0).find_map(|var| var.strip_prefix(MARK.as_bytes())?.strip_prefix(b"="))?;
        Some((pid, PathBuf::from(OsStr::from_bytes(mark))))
    })
}

/// The environment of a process, or nothing where we may not read it.
///
/// Whoever has spawned a program goes on when it has begun, and the kernel shows the environment of a program that begins
/// as an empty one until it has loaded it: then it is waited for.
pub fn environment(pid: u32) -> Option<Vec<u8>> {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
        if !environment.is_empty() || !is_to_have_environment(pid) || Instant::now() > deadline {
            return Some(environment);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Whether the kernel has an environment for this process, or has not loaded its program yet: where the code ends, it notes
/// after the environment. Its own threads have no program, and what ends or has ended has none any more.
fn is_to_have_environment(pid: u32) -> bool {
    const EXITING: u64 = 0x4;
    const KERNEL_THREAD: u64 = 0x20_0000;
    let Some(fields) = stat(pid) else { return false };
    // By their numbers in proc_pid_stat(5), of which the first two are cut off.
    let number = |field: usize| fields.get(field - 3).and_then(|text| text.parse::<u64>().ok()).unwrap_or_default();
    let (flags, code_end, start, end) = (number(9), number(27), number(50), number(51));
    !is_dead(&fields) && flags & (EXITING | KERNEL_THREAD) == 0 && (code_end == 0 || end > start)
}

/// A process and all that descend from it, the eldest first.
pub(crate) fn family(root: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for pid in entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()) {
        if let Some(parent) = parent(pid) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut family = vec![root];
    let mut at = 0;
    while let Some(pid) = family.get(at) {
        let mut next = children.remove(pid).unwrap_or_default();
        next.sort_unstable();
        family.extend(next);
        at += 1;
    }
    family
}

fn parent(pid: u32) -> Option<u32> {
    stat(pid)?.get(1)?.parse().ok()
}

/// The start time of a process, in clock ticks since boot: with the pid it names one process for ever.
pub(crate) fn start_time(pid: u32) -> Option<String> {
    let fields = stat(pid)?;
    if is_dead(&fields) { None } else { fields.get(19).cloned() }
}

/// Whether no thread of a process goes on: all are stopped or have ended.
pub(crate) fn is_stopped(pid: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut states = threads.filter_map(|thread| stat_in(&thread.path().join("stat")));
    states.all(|fields| is_dead(&fields) || fields[0] == "T")
}

/// What the kernel says of a process, from its state on: the command in parentheses before it may hold spaces.
fn stat(pid: u32) -> Option<Vec<String>> {
    stat_in(Path::new(&format!("/proc/{pid}/stat")))
}

fn stat_in(file: &Path) -> Option<Vec<String>> {
    let text = fs::read_to_string(file).ok()?;
    Some(text.rsplit_once(')')?.1.split_whitespace().map(str::to_owned).collect())
}

fn is_dead(stat: &[String]) -> bool {
    stat.first().is_none_or(|state| state == "Z" || state == "X")
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn the_environment_of_a_program_that_begins_is_waited_for_and_of_nothing_else() {
        for _ in 0..200 {
            let mut child = Command::new("/bin/sleep").arg("60").env("BEGUN", "1").spawn().unwrap();
            let environment = environment(child.id()).unwrap();
            assert!(environment.split(|b| *b == 0).any(|var| var == b"BEGUN=1"), "{environment:?}");
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let mut ended = Command::new("/bin/true").spawn().unwrap();
        let mut without = Command::new("/bin/sleep").arg("60").env_clear().spawn().unwrap();
        assert_eq!(environment(without.id()), Some(Vec::new()));
        assert!(!is_to_have_environment(without.id()), "it was seen and not given up");
        let deadline = Instant::now() + Duration::from_secs(60);
        while start_time(ended.id()).is_some() {
            assert!(Instant::now() < deadline, "it has not ended");
        }
        assert!(!is_to_have_environment(ended.id()));
        without.kill().unwrap();
        without.wait().unwrap();
        ended.wait().unwrap();
    }
}
