//! Signals, as CoreDNS takes them: SIGTERM and SIGINT stop in order, SIGQUIT at once; SIGHUP, SIGUSR1 and SIGUSR2
//! are ignored.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that are listened to, from now on.
#[derive(Debug)]
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    quit: Signal,
    _ignored: [Signal; 3],
}

impl Signals {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
            // Taken and dropped: their default is to end the process.
            _ignored: [
                signal(SignalKind::hangup())?,
                signal(SignalKind::user_defined1())?,
                signal(SignalKind::user_defined2())?,
            ],
        })
    }

    /// Returns at the next signal that asks for a stop. SIGQUIT ends the process here, with exit code 0.
    pub(super) async fn stop(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => tracing::info!("SIGTERM"),
            _ = self.interrupt.recv() => tracing::info!("SIGINT"),
            _ = self.quit.recv() => std::process::exit(0),
        }
    }
}
