//! How a run of trials on clusters ends before its time: in good order.

use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How a program ends that Ctrl-C stopped.
pub const STOPPED: u8 = 130;

/// Sets `stop` by the first SIGINT or SIGTERM, upon which all trials end and then the clusters in good order, and ends this
/// program by the second: then the kernel ends the clusters' processes, and the next bed removes what is left.
///
/// From this call on no signal ends us by its default action, so it comes before the first process of a bed.
pub fn by_signals(runtime: &Runtime, program: &'static str, stop: CancellationToken) -> JoinHandle<()> {
    let _here = runtime.enter();
    let [mut interrupt, mut terminate] =
        [SignalKind::interrupt(), SignalKind::terminate()].map(|kind| signal(kind).expect("signals can be had"));
    runtime.spawn(async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if stop.is_cancelled() {
                std::process::exit(STOPPED.into());
            }
            eprintln!("{program}: stopping: the clusters are ended; once more, and they are left to the kernel");
            stop.cancel();
        }
    })
}
