//! What the machine says of processes: cores they may use, CPU time they took, memory they hold.

use std::collections::HashMap;
use std::fs;
use std::time::Duration;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The core of the server that is measured.
pub const SERVER: usize = 0;

/// The core of the client, and of everything else.
pub const CLIENT: usize = 1;

/// Ticks of a second in `/proc`: the same on every Linux that Rust runs on.
const HERTZ: f64 = 100.0;

/// Lets this thread run on one core alone.
///
/// # Errors
/// Where the machine does not have it.
pub fn pin(core: usize) -> Result<(), String> {
    let mut set = CpuSet::new();
    let pinned = set.set(core).and_then(|()| sched_setaffinity(Pid::from_raw(0), &set));
    pinned.map_err(|e| format!("core {core} can't be had ({e}): measuring needs two cores, 0 and 1"))
}

/// Lets processes run on these cores alone, all their threads.
pub fn pin_all(pids: &[u32], cores: &[usize]) {
    let mut set = CpuSet::new();
    // A core that is not there was asked for before, by `pin`, which says so.
    for core in cores {
        let _ = set.set(*core);
    }
    for pid in pids {
        for task in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
            let id = task.file_name().to_str().and_then(|name| name.parse().ok());
            // A thread that has just ended needs no core.
            let _ = sched_setaffinity(Pid::from_raw(id.unwrap_or(-1)), &set);
        }
    }
}

/// Keeps the servers' core free: this process, and the control planes that it has started, go to the client's.
pub fn beside_the_client() {
    pin_all(&[vec![std::process::id()], control_planes()].concat(), &[CLIENT]);
}

/// The processes of the control planes that this process has started.
fn control_planes() -> Vec<u32> {
    let is = |pid: &u32| {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        matches!(name.trim(), "etcd" | "kube-apiserver")
    };
    tree(std::process::id()).into_iter().filter(is).collect()
}

/// Holds the control planes still until it ends: they would take the client's core now and then, and a query that waits
/// for it counts as the server's.
pub struct Still(Vec<u32>);

impl Still {
    /// Begins.
    #[must_use]
    pub fn begin() -> Self {
        let still = Self(control_planes());
        still.signal(Signal::SIGSTOP);
        still
    }

    fn signal(&self, signal: Signal) {
        for pid in &self.0 {
            // One that has ended does nothing either.
            let _ = kill(Pid::from_raw(pid.cast_signed()), signal);
        }
    }
}

impl Drop for Still {
    fn drop(&mut self) {
        self.signal(Signal::SIGCONT);
    }
}

/// Lets this process, and what it starts from now on, run on both cores, for work that is not measured.
pub fn everywhere() {
    pin_all(&[std::process::id()], &[SERVER, CLIENT]);
}

/// A process and all it has started, that live now.
#[must_use]
pub fn tree(root: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if let Some(parent) = stat(pid).and_then(|fields| fields.get(1)?.parse().ok()) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = vec![root];
    let mut next = 0;
    while let Some(pid) = found.get(next) {
        found.extend(children.remove(pid).unwrap_or_default());
        next += 1;
    }
    found
}

/// The fields of `/proc/PID/stat` behind the name: state, parent, and so on (proc(5)).
fn stat(pid: u32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may hold anything.
    Some(text.rsplit_once(')')?.1.split_whitespace().map(str::to_owned).collect())
}

/// CPU time that processes have taken.
#[derive(Debug, Clone, Default)]
pub struct Cpu {
    /// To the nanosecond, by thread.
    threads: HashMap<u32, u64>,
    user: f64,
    kernel: f64,
}

/// CPU time between two moments.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spent {
    /// All of it, in seconds.
    pub all: f64,
    /// In the program itself, to 10 ms.
    pub user: f64,
    /// In the kernel on its behalf, to 10 ms.
    pub kernel: f64,
}

impl Cpu {
    /// As it stands now.
    #[must_use]
    pub fn of(pids: &[u32]) -> Self {
        let mut cpu = Self::default();
        for &pid in pids {
            if let Some(fields) = stat(pid) {
                let ticks = |i: usize| fields.get(i).and_then(|t| t.parse::<f64>().ok()).unwrap_or(0.0);
                cpu.user += ticks(11) / HERTZ;
                cpu.kernel += ticks(12) / HERTZ;
            }
            for task in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
                let id: Option<u32> = task.file_name().to_str().and_then(|name| name.parse().ok());
                let text = fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
                let nanos: Option<u64> = text.split(' ').next().and_then(|nanos| nanos.parse().ok());
                cpu.threads.extend(id.zip(nanos));
            }
        }
        cpu
    }

    /// What was spent since `before`. Threads that ended in between are missing from `all` and are in the other two.
    #[must_use]
    pub fn since(&self, before: &Self) -> Spent {
        let one = |(id, nanos): (&u32, &u64)| nanos - before.threads.get(id).copied().unwrap_or(0).min(*nanos);
        let (user, kernel) = (self.user - before.user, self.kernel - before.kernel);
        let all = self.threads.iter().map(one).sum::<u64>() as f64 / 1e9;
        // The kernel may be built without schedstat.
        Spent { all: if all > 0.0 { all } else { user + kernel }, user, kernel }
    }
}

/// What all cores have been busy with, in seconds: programs and the kernel, and other machines of the same host.
#[derive(Debug, Clone, Copy)]
pub struct Busy {
    /// This machine.
    pub busy: f64,
    /// Others (steal).
    pub stolen: f64,
}

impl Busy {
    /// Since the start.
    #[must_use]
    pub fn now() -> Self {
        let text = fs::read_to_string("/proc/stat").unwrap_or_default();
        let fields: Vec<f64> =
            text.lines().next().unwrap_or_default().split_whitespace().filter_map(|field| field.parse().ok()).collect();
        let tick = |i: usize| fields.get(i).copied().unwrap_or(0.0) / HERTZ;
        // user, nice, system, idle, iowait, irq, softirq, steal
        Self { busy: tick(0) + tick(1) + tick(2) + tick(5) + tick(6), stolen: tick(7) }
    }
}

/// Memory of processes, in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Memory {
    /// Resident, pages shared with others counted in part.
    pub pss: u64,
    /// Resident.
    pub rss: u64,
    /// The most that was ever resident, or since [`forget_peak`].
    pub peak: u64,
}

impl Memory {
    /// As it stands now.
    #[must_use]
    pub fn of(pids: &[u32]) -> Self {
        let mut memory = Self::default();
        for pid in pids {
            let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
            let (rollup, status) = (read("smaps_rollup"), read("status"));
            memory.pss += kibibytes(&rollup, "Pss:");
            memory.rss += kibibytes(&status, "VmRSS:");
            memory.peak += kibibytes(&status, "VmHWM:");
        }
        memory
    }
}

/// Lets the peak begin again at what is resident now.
pub fn forget_peak(pids: &[u32]) {
    for pid in pids {
        // Where it can't be, the peak stays what it was, which shows as a ratio that does not change.
        let _ = fs::write(format!("/proc/{pid}/clear_refs"), "5");
    }
}

fn kibibytes(text: &str, field: &str) -> u64 {
    let value = text.lines().find_map(|line| line.strip_prefix(field));
    value.and_then(|value| value.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// How busy everything else was while something was measured, in cores.
#[must_use]
pub fn others(before: Busy, after: Busy, measured: f64, wall: Duration) -> f64 {
    let all = after.busy - before.busy + after.stolen - before.stolen;
    ((all - measured) / wall.as_secs_f64().max(f64::MIN_POSITIVE)).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_busy_thread_is_seen_and_so_is_memory() {
        let me = [std::process::id()];
        let before = Cpu::of(&me);
        let begin = Instant::now();
        let mut kept = Vec::new();
        while Cpu::of(&me).since(&before).all < 0.02 {
            assert!(begin.elapsed() < Duration::from_secs(60), "no CPU time is seen");
            kept.push(vec![1_u8; 4096]);
        }
        let memory = Memory::of(&me);
        assert!(memory.pss > 0 && memory.rss >= memory.pss / 2 && memory.peak >= memory.rss / 2, "{memory:?}");
        assert!(tree(me[0]).contains(&me[0]));
        assert!(!kept.is_empty());
    }
}
