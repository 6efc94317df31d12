//! Beds end, however their owners do, and those of the command when they are told to.

mod owner;

use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use owner::marked;
use testbed::{Bed, CoreDns};

/// How long the kernel may take to begin or end a program.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn everything_is_gone_after_a_panic() {
    let (tell, told) = mpsc::channel();
    let owner = std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let bed = Bed::new().unwrap();
            let cluster = bed.cluster("c1").await.unwrap();
            let server = CoreDns::start_in(&bed, ".:{port} {\n bind 127.0.0.1\n}").await.unwrap();
            assert_eq!(bed.running(), 4, "etcd, API server, controllers, CoreDNS");
            tell.send((bed.dir().to_owned(), cluster.address(), server.process().pid())).unwrap();
            panic!("this panic is part of the test");
        });
    });
    assert!(owner.join().is_err());
    let (dir, address, pid) = told.recv().unwrap();
    assert!(!dir.exists());
    assert!(TcpStream::connect(address).is_err());
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    assert_eq!(marked(&dir), Vec::<u32>::new());
}

/// Not a test by itself: the process that the next test kills.
#[tokio::test]
#[ignore = "run by everything_is_gone_after_a_kill"]
async fn owner_that_gets_killed() {
    let bed = Bed::new().unwrap();
    // One that the kernel ends with us, and one that nobody ends but the next bed.
    let _with_us = bed.process("with", "/bin/sleep").arg("60").spawn().unwrap();
    let mut orphan = Command::new("/bin/sleep");
    let orphan = orphan.arg("60").env("NAMESAKE_TESTBED", bed.dir()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut orphan = orphan.spawn().unwrap();
    println!("bed: {}", bed.dir().display());
    orphan.wait().unwrap();
}

/// Not a test by itself either: the next bed in the place of that one.
#[test]
#[ignore = "run by everything_is_gone_after_a_kill"]
fn owner_of_the_next_bed() {
    drop(Bed::new().unwrap());
}

#[test]
fn everything_is_gone_after_a_kill() {
    // In a place of their own, where no bed of another test is the next one.
    let home = Bed::new().unwrap();
    let (mut owner, dir) = owner::start(owner::command("owner_that_gets_killed").env("TMPDIR", home.dir()));
    assert!(dir.starts_with(home.dir()), "{}", dir.display());
    // What asks to end with its owner does so before it becomes `sleep`.
    let sleeps = |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "sleep\n");
    let deadline = Instant::now() + PATIENCE;
    while marked(&dir).iter().filter(|pid| sleeps(pid)).count() != 2 {
        assert!(Instant::now() < deadline, "{:?} and not two that sleep", marked(&dir));
        std::thread::yield_now();
    }
    owner.kill().unwrap();
    owner.wait().unwrap();
    let deadline = Instant::now() + PATIENCE;
    while marked(&dir).len() > 1 {
        assert!(Instant::now() < deadline, "the kernel has not ended the child of a dead owner");
        std::thread::yield_now();
    }
    assert!(dir.exists(), "nobody could remove it yet");
    let next = owner::command("owner_of_the_next_bed").env("TMPDIR", home.dir()).status().unwrap();
    assert!(next.success() && !dir.exists(), "the next bed has removed it");
    assert_eq!(marked(&dir), Vec::<u32>::new());
}

#[test]
fn a_bed_whose_folder_is_gone_ends_too_and_one_in_another_ends_with_it() {
    let home = Bed::new().unwrap();
    let inner = home.dir().join("inner");
    let sleeper = |dir: &std::path::Path| {
        let mut command = Command::new("/bin/sleep");
        command.arg("600").env("NAMESAKE_TESTBED", dir).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    Bed::that_outlives_us(&inner).unwrap().keep().unwrap();
    let mut in_another = sleeper(&inner);
    let mut homeless = sleeper(&home.dir().join("never-there"));
    drop(Bed::new().unwrap());
    assert!(!homeless.wait().unwrap().success(), "the next bed ends what has no folder");
    assert_eq!(in_another.try_wait().unwrap(), None, "a bed that is kept goes on");
    drop(home);
    assert!(!in_another.wait().unwrap().success(), "its folder was in another's, which is gone");
    assert!(!inner.exists());
}

#[test]
fn the_command_leaves_clusters_up_and_takes_them_down() {
    let home = Bed::new().unwrap();
    let dir = home.dir().join("up");
    let testbed = |args: &[&str]| {
        let out = Command::new(env!("CARGO_BIN_EXE_testbed")).args(args).arg("--dir").arg(&dir).output().unwrap();
        (out.status.success(), String::from_utf8(out.stdout).unwrap(), String::from_utf8(out.stderr).unwrap())
    };
    let (ok, _, err) = testbed(&["kubeconfig"]);
    assert!(!ok && err.contains("testbed up"), "{err}");
    let (ok, out, err) = testbed(&["up", "--clusters", "2", "--crds", "v0.5.2"]);
    assert!(ok, "{err}");
    println!("{out}");
    let (ok, _, err) = testbed(&["up"]);
    assert!(!ok && err.contains("testbed down"), "{err}");
    let (_, file, _) = testbed(&["kubeconfig", "--path"]);
    let kubectl = testbed::binaries().unwrap().join("kubectl");
    for context in ["c1", "c2"] {
        let out = Command::new(&kubectl)
            .args(["--kubeconfig", file.trim(), "--context", context, "get", "serviceimports", "-A"])
            .output()
            .unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    }
    // A bed of a test does not touch it, though its maker is gone.
    drop(Bed::new().unwrap());
    let up = marked(&dir.canonicalize().unwrap());
    assert_eq!(up.len(), 6, "three programs for each of two clusters");
    let canonical = dir.canonicalize().unwrap();
    let (ok, _, err) = testbed(&["down"]);
    assert!(ok, "{err}");
    assert!(!dir.exists());
    assert_eq!(marked(&canonical), Vec::<u32>::new());
    assert!(testbed(&["down"]).0, "down is done when nothing is up");
}
