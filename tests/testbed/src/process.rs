//! One program that runs in a bed: its log, its signals, its end.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::bed::Bed;
use crate::error::{Doing, Error, Result};
use crate::network::Network;
use crate::{http, place};

/// How often a condition is looked at while it is waited for.
const LOOK: Duration = Duration::from_millis(10);

/// How long the kernel may take to stop a program: it does so at once, where the machine is not busy.
const STOP: Duration = Duration::from_secs(30);

/// A program that is about to run in a bed.
pub struct ProcessBuilder {
    bed: Bed,
    name: String,
    program: PathBuf,
    args: Vec<OsString>,
    envs: Vec<(OsString, OsString)>,
    dir: Option<PathBuf>,
    network: Option<Network>,
}

impl ProcessBuilder {
    pub(crate) fn new(bed: Bed, name: &str, program: PathBuf) -> ProcessBuilder {
        ProcessBuilder {
            bed,
            name: name.to_owned(),
            program,
            args: Vec::new(),
            envs: Vec::new(),
            dir: None,
            network: None,
        }
    }

    /// Adds one argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> ProcessBuilder {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    pub fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> ProcessBuilder {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Sets an environment variable.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> ProcessBuilder {
        self.envs.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Sets the working folder; the bed's folder if not set. The log is written there.
    pub fn current_dir(mut self, dir: impl Into<PathBuf>) -> ProcessBuilder {
        self.dir = Some(dir.into());
        self
    }

    /// Lets it run in another network namespace than ours.
    pub(crate) fn in_network(mut self, network: Option<&Network>) -> ProcessBuilder {
        self.network = network.cloned();
        self
    }

    /// Starts the program. Standard output and standard error go to `<name>.log`, appended.
    pub fn spawn(self) -> Result<Process> {
        let dir = self.dir.unwrap_or_else(|| self.bed.dir().to_owned());
        let log = dir.join(format!("{}.log", self.name));
        let file = OpenOptions::new().create(true).append(true).open(&log).doing(log.display())?;
        let log_start = file.metadata().doing(log.display())?.len();
        if !self.program.is_file() {
            return Err(Error::new(format!("cannot start {}: there is no {}", self.name, self.program.display())));
        }
        let mut command = wrapped(&self.program, self.network.as_ref(), self.bed.outlives());
        command
            .args(&self.args)
            .envs(self.envs)
            .env(place::MARK, self.bed.dir())
            .current_dir(&dir)
            .stdin(Stdio::null())
            .stdout(file.try_clone().doing(log.display())?)
            .stderr(file);
        let child = spawn_from_lasting_thread(command).doing(format!("starting {}", self.program.display()))?;
        Ok(Process { bed: self.bed, name: self.name, pid: child.id(), child: Mutex::new(child), log, log_start })
    }
}

/// The program, started so that it ends with us, or, for `testbed up`, so that it does not.
fn wrapped(program: &Path, network: Option<&Network>, outlives: bool) -> Command {
    // It enters the namespace and replaces itself by the program, as the helpers below do.
    let mut words: Vec<OsString> = Vec::new();
    if let Some(network) = network {
        words.push("nsenter".into());
        words.extend(network.prefix().map(OsString::from));
    }
    words.push(program.into());
    // Both helpers are of util-linux and replace themselves by the program, so its pid is the child's. Where they are
    // missing, the mark in the environment still finds the processes of a dead owner.
    let helper = if outlives { ("setsid", &[][..]) } else { ("setpriv", &["--pdeathsig", "KILL", "--"][..]) };
    let on_path = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(helper.0).is_file()));
    if on_path {
        let mut command = Command::new(helper.0);
        command.args(helper.1).args(words);
        // setsid forks if it leads a group; setpriv's child gets a group of its own, away from the terminal's Ctrl-C.
        if !outlives {
            command.process_group(0);
        }
        command
    } else {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).process_group(0);
        command
    }
}

/// Starts a child from a thread that lives as long as this process: the kernel sends the death signal when the *thread*
/// that started the child ends, and the thread of a test ends with the test.
fn spawn_from_lasting_thread(command: Command) -> std::io::Result<Child> {
    type Job = (Command, mpsc::Sender<std::io::Result<Child>>);
    static STARTER: OnceLock<Mutex<mpsc::Sender<Job>>> = OnceLock::new();
    let starter = STARTER.get_or_init(|| {
        let (jobs, todo) = mpsc::channel::<Job>();
        std::thread::spawn(move || {
            for (mut command, reply) in todo {
                let _ = reply.send(command.spawn());
            }
        });
        Mutex::new(jobs)
    });
    let (reply, answer) = mpsc::channel();
    let gone = || std::io::Error::other("the thread that starts programs is gone");
    starter.lock().unwrap_or_else(PoisonError::into_inner).send((command, reply)).map_err(|_| gone())?;
    answer.recv().map_err(|_| gone())?
}

/// A program that runs in a bed. Dropping it ends it (SIGKILL).
pub struct Process {
    bed: Bed,
    name: String,
    pid: u32,
    child: Mutex<Child>,
    log: PathBuf,
    log_start: u64,
}

impl Process {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Where it writes its output.
    pub fn log_path(&self) -> &Path {
        &self.log
    }

    /// What it has written since it was started.
    pub fn log(&self) -> Result<String> {
        let mut file = File::open(&self.log).doing(self.log.display())?;
        file.seek(SeekFrom::Start(self.log_start)).doing(self.log.display())?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).doing(self.log.display())?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The last lines of its log, for error messages.
    pub fn log_tail(&self, lines: usize) -> String {
        let log = self.log().unwrap_or_else(|e| e.to_string());
        let all: Vec<_> = log.lines().collect();
        all[all.len().saturating_sub(lines)..].join("\n")
    }

    /// How it ended, or nothing while it runs.
    pub fn exited(&self) -> Result<Option<ExitStatus>> {
        self.child().try_wait().doing(format!("waiting for {}", self.name))
    }

    /// Waits until it ends by itself or by a signal that was sent.
    pub async fn wait_exit(&self, within: Duration) -> Result<ExitStatus> {
        let deadline = Instant::now() + within;
        loop {
            if let Some(status) = self.exited()? {
                return Ok(status);
            }
            self.not_yet(deadline, "has not ended")?;
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits until a line of its log contains `text`, and returns that line.
    pub async fn wait_for_line(&self, text: &str, within: Duration) -> Result<String> {
        let deadline = Instant::now() + within;
        loop {
            // Looked at in this order, the last line of a program that has just ended is not missed.
            let ended = self.exited()?;
            if let Some(line) = self.log()?.lines().find(|line| line.contains(text)) {
                return Ok(line.to_owned());
            }
            if let Some(status) = ended {
                return Err(self.error(&format!("ended ({status}) without a log line that contains {text:?}")));
            }
            self.not_yet(deadline, &format!("has not written a line that contains {text:?}"))?;
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits until `http://<address><path>` answers with this code, and returns the body.
    pub async fn wait_for_http(
        &self,
        address: std::net::SocketAddr,
        path: &str,
        code: u16,
        within: Duration,
    ) -> Result<String> {
        let deadline = Instant::now() + within;
        loop {
            let answer = http::get(address, path, Duration::from_secs(2)).await;
            if let Ok((got, body)) = &answer
                && *got == code
            {
                return Ok(body.clone());
            }
            if let Some(status) = self.exited()? {
                return Err(self.error(&format!("ended ({status}) before http://{address}{path} answered {code}")));
            }
            let last = answer.map_or_else(|e| e.to_string(), |(got, body)| format!("{got}: {}", body.trim()));
            self.not_yet(deadline, &format!("does not answer {code} on http://{address}{path} (last: {last})"))?;
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Sends a signal by name: `TERM`, `INT`, `HUP`, `KILL`, `STOP`, `CONT`, `USR1` … After `STOP` it has stopped.
    pub fn signal(&self, name: &str) -> Result<()> {
        let signal: Signal =
            format!("SIG{}", name.trim_start_matches("SIG")).parse().doing(format!("signal {name:?}"))?;
        // Under the lock, and only while it has not been waited for: its pid is then still its own.
        let mut child = self.child();
        if child.try_wait().doing(&self.name)?.is_some() {
            return Err(Error::new(format!("cannot send {signal} to {}: it has ended", self.name)));
        }
        kill(Pid::from_raw(self.pid as i32), signal).doing(format!("sending {signal} to {}", self.name))?;
        if signal == Signal::SIGSTOP { self.wait_stopped() } else { Ok(()) }
    }

    /// Waits until none of its threads goes on: the kernel stops each of them when it gets to it.
    fn wait_stopped(&self) -> Result<()> {
        let deadline = Instant::now() + STOP;
        // Twice: a thread may have made another one between our list of threads and its own stop.
        while !(place::is_stopped(self.pid) && place::is_stopped(self.pid)) {
            self.not_yet(deadline, "has not stopped")?;
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Ends it at once (SIGKILL) and waits for that.
    pub fn kill(&self) -> Result<()> {
        let mut child = self.child();
        child.kill().doing(format!("killing {}", self.name))?;
        child.wait().doing(format!("waiting for {}", self.name)).map(drop)
    }

    /// Fails if it has ended by itself.
    pub(crate) fn must_run(&self) -> Result<()> {
        match self.exited()? {
            Some(status) => Err(self.error(&format!("ended ({status})"))),
            None => Ok(()),
        }
    }

    pub(crate) fn error(&self, what: &str) -> Error {
        Error::new(format!("{} {what}; the end of {}:\n{}", self.name, self.log.display(), self.log_tail(20)))
    }

    fn not_yet(&self, deadline: Instant, what: &str) -> Result<()> {
        if Instant::now() < deadline { Ok(()) } else { Err(self.error(&format!("{what} in time"))) }
    }

    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.bed.is_kept() {
            // Nothing to say about an error: it has ended, or the bed's own end will find it.
            let _ = self.kill();
        }
    }
}
