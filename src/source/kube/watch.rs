//! The watch: from a version on, until only a new list will do.

use std::io::ErrorKind;
use std::pin::pin;
use std::time::Duration;

use tokio::time::Instant;
use tracing::debug;

use super::access::chain;
use super::backoff::{AWAY, Backoff};
use super::decode::{self, Event};
use super::follow::{Follower, Position, Stop};
use super::frames::Frames;
use super::server::Failure;
use super::subject::Subject;

/// How long the API server may take to begin a watch.
const START: Duration = Duration::from_secs(10);

/// How long after the time that the API server was asked to end a watch we end it ourselves: a connection that died
/// without a word brings neither events nor the end (WCH-02).
const GRACE: Duration = Duration::from_secs(5);

/// A watch that lived so long was a good one, even if it brought nothing.
const GOOD: Duration = Duration::from_secs(5);

impl<S: Subject> Follower<S> {
    /// Watches from `position`, again and again, until a new list is needed or nobody takes items any more.
    pub(super) async fn watch(&mut self, mut position: Position<S::Item>) -> Stop {
        loop {
            let began = Instant::now();
            let stop = match self.watch_once(&mut position).await {
                Ok(early) => {
                    if began.elapsed() >= GOOD {
                        self.progress();
                    } else {
                        // An API server that ends every watch at once must not be asked in a circle.
                        let pause = self.backoff.pause(AWAY);
                        tokio::time::sleep(pause).await;
                    }
                    // Connections are cut all the time: that alone is no trouble, only when the next does not come
                    // about either. But a watch also ends early when its CRD is changed, so look where it is now.
                    match if early { self.find().await.map(Some) } else { Ok(None) } {
                        Ok(Some(target)) if !target.same_place(&position.target) => return Stop::Relist,
                        Ok(_) => continue,
                        Err(stop) => stop,
                    }
                }
                Err(stop) => stop,
            };
            match stop {
                Stop::Closed | Stop::Relist | Stop::Missing | Stop::Broken(_) => return stop,
                Stop::Failed { failure: Failure::Gone, .. } => return Stop::Relist,
                // Whatever comes back there, what follows on the old version would have gaps.
                Stop::Failed { failure: Failure::NotFound, .. } => return Stop::Missing,
                Stop::Failed { .. } => self.trouble(stop).await,
            }
        }
    }

    /// One watch; at its end, whether that came before it was due. From there it goes on.
    async fn watch_once(&mut self, position: &mut Position<S::Item>) -> Result<bool, Stop> {
        let failed = |failure| Stop::Failed { verb: "watch", failure };
        if self.server.place().await != position.place {
            return Err(Stop::Relist);
        }
        let seconds = self.seconds();
        let uri = position.target.watch_uri(&position.version, seconds);
        let (media, body) = self.server.stream(&uri, self.media(), START).await.map_err(failed)?;
        self.alive();
        let began = Instant::now();
        let asked = Duration::from_secs(seconds);
        let mut silence = pin!(tokio::time::sleep_until(began + asked + GRACE));
        let mut frames = Frames::new(media, Box::pin(body));
        let mut unsure = Backoff::new();
        loop {
            let frame = tokio::select! {
                biased; // a watch that brings something is not silent
                () = position.held.due() => {
                    self.confirm(position, &mut unsure).await?;
                    continue;
                }
                frame = frames.next() => frame,
                () = &mut silence => {
                    let message = format!("the watch was silent for {} s and did not end", began.elapsed().as_secs());
                    return Err(failed(Failure::Unreachable(message)));
                }
            };
            let frame = match frame {
                Ok(Some(frame)) => frame,
                Ok(None) => return Ok(began.elapsed() + GOOD < asked),
                Err(error) if error.kind() == ErrorKind::InvalidData => {
                    return Err(Stop::Broken(Failure::Unreachable(format!("of the watch: {error}"))));
                }
                Err(error) => {
                    debug!(resource = self.plural(), error = chain(&error), "the watch was cut off");
                    return Ok(true);
                }
            };
            // What is unreadable may have been an event: only a list can tell what it was.
            let (event, version) = decode::event(media, frame).map_err(Stop::Broken)?;
            match event {
                Event::Present(object) => {
                    if let Some(json) = object.json().filter(|_| !position.held.is_empty()) {
                        position.held.forget(&decode::name(json));
                    }
                    if let Some(item) = self.subject.present(&object) {
                        self.send(item).await?;
                    }
                }
                Event::Deleted(object) => match (self.subject.absent(&object), object.json()) {
                    (Some(item), Some(json)) if self.subject.collection().is_custom() => {
                        position.held.hold(decode::name(json), item);
                    }
                    (Some(item), _) => self.send(item).await?,
                    (None, _) => {}
                },
                Event::Bookmark => {}
                Event::Failed(Failure::Gone) => return Err(Stop::Relist),
                Event::Failed(failure) => return Err(Stop::Broken(failure)),
            }
            if let Some(version) = version {
                position.version = version;
            }
            self.alive();
            self.progress();
        }
    }

    /// Asks whether held deletes mean what they say, and passes them on if so.
    async fn confirm(&mut self, position: &mut Position<S::Item>, unsure: &mut Backoff) -> Result<(), Stop> {
        match self.find().await {
            Ok(target) if target.same_place(&position.target) => {
                for item in position.held.release() {
                    self.send(item).await?;
                }
                Ok(())
            }
            Ok(_) => Err(Stop::Relist),
            // Nobody knows: they wait, and with them nothing else.
            Err(Stop::Failed { .. }) => {
                position.held.postpone(unsure.pause(AWAY));
                Ok(())
            }
            Err(stop) => Err(stop),
        }
    }

    /// How long the next watch is asked for: a little less than what was set, by chance, so that many replicas and
    /// both watches do not come back in step. Never more: a quiet API server sends its one bookmark shortly before
    /// the end, and the time to the next must stay below the 60 s after which data counts as stale.
    fn seconds(&self) -> u64 {
        let most = self.watch_seconds.max(1);
        most - fastrand::u64(0..=most / 5)
    }
}
